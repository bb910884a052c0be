#include "ops/operator.h"

namespace hierarchos::ops {

void concat_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const int axis = static_cast<int>(attrs.i("axis"));
  const Shape& shape = outputs[0].type.shape;
  int64_t outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= shape[a];
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  int64_t begin = 0;
  for (const RefTensor* in : inputs) {
    const int64_t extent = in->type.shape[axis];
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t e = 0; e < extent * inner; ++e)
        outputs[0].data[static_cast<size_t>((o * shape[axis] + begin) * inner + e)] =
            in->data[static_cast<size_t>(o * extent * inner + e)];
    begin += extent;
  }
}

}  // namespace hierarchos::ops
