#include <algorithm>

#include "ops/operator.h"

namespace hierarchos::ops {

void gather_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &table = *inputs[0], &ids = *inputs[1];
  int64_t row = 1;
  for (int a = 1; a < table.type.shape.rank(); ++a) row *= table.type.shape[a];
  for (size_t t = 0; t < ids.data.size(); ++t) {
    const auto id = static_cast<int64_t>(ids.data[t]);
    if (id < 0 || id >= table.type.shape[0]) continue;  // stays zero
    std::copy_n(table.data.begin() + id * row, row, outputs[0].data.begin() + static_cast<int64_t>(t) * row);
  }
}

}  // namespace hierarchos::ops
