#include "ops/operator.h"

namespace hierarchos::ops {

void argmax_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const int64_t classes = inputs[0]->type.shape[1];
  for (size_t t = 0; t < outputs[0].data.size(); ++t) {
    const double* row = inputs[0]->data.data() + static_cast<int64_t>(t) * classes;
    int64_t best = -1;
    for (int64_t v = 0; v < classes; ++v)
      if (row[v] == row[v] && (best < 0 || row[v] > row[best])) best = v;
    outputs[0].data[t] = static_cast<double>(best < 0 ? 0 : best);
  }
}

}  // namespace hierarchos::ops
