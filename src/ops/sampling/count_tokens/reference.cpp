#include "ops/operator.h"
#include "ops/sampling/count_tokens/count_tokens.h"

namespace hierarchos::ops {

void count_tokens_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const int64_t sequences = inputs[0]->type.shape[0], n = inputs[0]->type.shape[1];
  std::vector<double>& counts = outputs[0].data;
  for (const bool clearing : {true, false}) {
    for (size_t t = 0; t < inputs[1]->data.size(); ++t) {
      const auto row = static_cast<int64_t>(inputs[1]->data[t]), id = static_cast<int64_t>(inputs[2]->data[t]);
      const auto kind = static_cast<int32_t>(inputs[3]->data[t]);
      if (row < 0 || row >= sequences) continue;
      if (clearing) {
        for (int64_t i = 0; i < n && kind >= kRestart; ++i) counts[static_cast<size_t>(row * n + i)] = 0;
      } else if (id >= 0 && id < n) {
        double& count = counts[static_cast<size_t>(row * n + id)];
        if (kind % kRestart == kPromptToken) count = static_cast<double>(static_cast<int64_t>(count) | 1);
        if (kind % kRestart == kNewToken) count += 2;
      }
    }
  }
}

}  // namespace hierarchos::ops
