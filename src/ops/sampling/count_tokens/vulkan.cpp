#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> count_tokens_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t rows, ids, kinds, counts;
    uint32_t tokens, sequences, columns;
  };
  const VulkanPipeline* clear = &backend.pipeline("count_tokens/clear", "main");
  const VulkanPipeline* count = &backend.pipeline("count_tokens/count", "main");
  Push push{};
  push.tokens = narrow(request, request.inputs[1].shape[0]);
  push.sequences = narrow(request, request.inputs[0].shape[0]);
  push.columns = narrow(request, request.inputs[0].shape[1]);
  auto kernel = std::make_unique<RecordedKernel>("count_tokens");
  kernel->dependent = 2;
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.rows = at[1];
    push.ids = at[2];
    push.kinds = at[3];
    push.counts = at[4];
    dispatch(recorder, *clear, push, push.tokens);
    recorder.barrier();
    dispatch(recorder, *count, push, groups_of(push.tokens, 64));
  };
  return kernel;
}

}  // namespace hierarchos::ops
