#include <algorithm>

#include "ops/cpu/kernel.h"
#include "ops/operator.h"
#include "ops/sampling/count_tokens/count_tokens.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> count_tokens_cpu(CpuBackend&, const KernelRequest& request) {
  const int64_t sequences = request.inputs[0].shape[0], n = request.inputs[0].shape[1];
  const int64_t tokens = request.inputs[1].shape[0];
  return cpu::make_kernel("count_tokens", [=](ThreadPool&, std::span<std::byte* const> at) {
    const auto* rows = reinterpret_cast<const int32_t*>(at[1]);
    const auto* ids = reinterpret_cast<const int32_t*>(at[2]);
    const auto* kinds = reinterpret_cast<const int32_t*>(at[3]);
    auto* counts = reinterpret_cast<int32_t*>(at[4]);
    const auto counted = [&](int64_t t) { return rows[t] >= 0 && rows[t] < sequences; };
    for (int64_t t = 0; t < tokens; ++t)
      if (counted(t) && kinds[t] >= kRestart) std::fill_n(counts + rows[t] * n, n, 0);
    for (int64_t t = 0; t < tokens; ++t) {
      if (!counted(t) || ids[t] < 0 || ids[t] >= n) continue;
      int32_t& count = counts[rows[t] * n + ids[t]];
      if (kinds[t] % kRestart == kPromptToken) count |= 1;
      if (kinds[t] % kRestart == kNewToken) count += 2;
    }
  });
}

}  // namespace hierarchos::ops
