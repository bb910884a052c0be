#include "ops/operator.h"

namespace hierarchos::ops {

void scatter_add_rows_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &rows = *inputs[1], &ids = *inputs[2], &order = *inputs[3];
  const Shape& shape = outputs[0].type.shape;
  int64_t row = 1;
  for (int a = 1; a < shape.rank(); ++a) row *= shape[a];
  const int64_t padding = attrs.i_or("padding_idx", -1);
  for (double position : order.data) {
    const auto t = static_cast<int64_t>(position);
    const auto id = static_cast<int64_t>(ids.data[static_cast<size_t>(t)]);
    if (id < 0 || id >= shape[0] || id == padding) continue;
    for (int64_t i = 0; i < row; ++i)
      outputs[0].data[static_cast<size_t>(id * row + i)] += rows.data[static_cast<size_t>(t * row + i)];
  }
}

}  // namespace hierarchos::ops
