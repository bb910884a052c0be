#include <algorithm>

#include "ops/operator.h"

namespace hierarchos::ops {

void scatter_rows_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &rows = *inputs[1], &slots = *inputs[2];
  const Shape& shape = outputs[0].type.shape;
  int64_t row = 1;
  for (int a = 1; a < shape.rank(); ++a) row *= shape[a];
  for (size_t t = 0; t < slots.data.size(); ++t) {
    const auto slot = static_cast<int64_t>(slots.data[t]);
    if (slot < 0 || slot >= shape[0]) continue;
    std::copy_n(rows.data.begin() + static_cast<int64_t>(t) * row, row, outputs[0].data.begin() + slot * row);
  }
}

}  // namespace hierarchos::ops
