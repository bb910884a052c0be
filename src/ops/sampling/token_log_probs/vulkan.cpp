#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> token_log_probs_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t logits, ids, out_ids, out_values;
    uint32_t rows, columns, count;
  };
  const VulkanPipeline* pipeline = &backend.pipeline("token_log_probs/token_log_probs", "main");
  Push push{};
  push.rows = narrow(request, request.inputs[0].shape[0]);
  push.columns = narrow(request, request.inputs[0].shape[1]);
  push.count = narrow(request, request.attrs.i("count"));
  auto kernel = std::make_unique<RecordedKernel>("token_log_probs");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.logits = at[0];
    push.ids = at[1];
    push.out_ids = at[2];
    push.out_values = at[3];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
