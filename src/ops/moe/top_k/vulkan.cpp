#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> top_k_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t x, values, indices;
    uint64_t columns;
    uint32_t rows, k;
  };
  const TensorDesc& x = request.inputs[0];
  const uint32_t type = vulkan_type(request, x);
  const VulkanPipeline* pipeline = &backend.pipeline("top_k/top_k", "main", std::span(&type, 1));
  Push push{};
  push.rows = narrow(request, x.shape[0]);
  push.columns = narrow(request, x.shape[1]);
  push.k = narrow(request, request.attrs.i("k"));
  auto kernel = std::make_unique<RecordedKernel>("top_k");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.x = at[0];
    push.values = at[1];
    push.indices = at[2];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
