#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> sample_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t scores, settings, keys, steps, ids, facts;
    uint32_t rows, columns;
  };
  const VulkanPipeline* pipeline = &backend.pipeline("sample/sample", "main");
  Push push{};
  push.rows = narrow(request, request.inputs[0].shape[0]);
  push.columns = narrow(request, request.inputs[0].shape[1]);
  // Sums of weights (up to 2^40 each) have 64 bits, and top-k is a float.
  if (push.columns > 1u << 23)
    throw UnsupportedError("sample: the Vulkan kernel takes at most 2^23 tokens, not {}", push.columns);
  auto kernel = std::make_unique<RecordedKernel>("sample");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.scores = at[0];
    push.settings = at[1];
    push.keys = at[2];
    push.steps = at[3];
    push.ids = at[4];
    push.facts = at[5];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
