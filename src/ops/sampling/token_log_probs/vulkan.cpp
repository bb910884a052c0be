#include <algorithm>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> token_log_probs_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t logits, ids, out_ids, out_values, tops, sums, best_values, best_ids;
    uint32_t rows, columns, count, chunks, kept;
  };
  constexpr uint32_t kChunk = 1024;  // as in the shader
  const VulkanPipeline* chunks = &backend.pipeline("token_log_probs/chunks", "main");
  const VulkanPipeline* merge = &backend.pipeline("token_log_probs/merge", "main");
  Push push{};
  push.rows = narrow(request, request.inputs[0].shape[0]);
  push.columns = narrow(request, request.inputs[0].shape[1]);
  push.count = narrow(request, request.attrs.i("count"));
  push.chunks = static_cast<uint32_t>(groups_of(push.columns, kChunk));
  push.kept = std::min(push.count, kChunk);
  const uint64_t each = uint64_t{push.rows} * push.chunks * 4, best = each * push.kept;
  auto kernel = std::make_unique<RecordedKernel>("token_log_probs");
  kernel->scratch = static_cast<int64_t>(2 * each + 2 * best);
  kernel->dependent = 2;
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.logits = at[0];
    push.ids = at[1];
    push.out_ids = at[2];
    push.out_values = at[3];
    push.tops = at[4];
    push.sums = push.tops + each;
    push.best_values = push.sums + each;
    push.best_ids = push.best_values + best;
    dispatch(recorder, *chunks, push, uint64_t{push.rows} * push.chunks);
    recorder.barrier();
    dispatch(recorder, *merge, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
