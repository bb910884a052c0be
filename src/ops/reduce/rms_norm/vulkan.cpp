#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

struct Push {
  uint64_t x, weight, rstd, y, dy;
  uint32_t rows, columns;
  float eps, offset;
};

// Short rows (heads) go to small workgroups.
const char* size_for(int64_t columns) { return columns <= 512 ? "64" : "256"; }

}  // namespace

std::unique_ptr<Kernel> rms_norm_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc& x = request.inputs[0];
  const bool weighted = request.inputs.size() > 1;
  const uint32_t types[] = {vulkan_type(request, x), vulkan_type_or_none(request, weighted ? 1 : -1), 0};
  const std::string module = std::string("rms_norm/forward_") + size_for(x.shape.back());
  const VulkanPipeline* pipeline = &backend.pipeline(module, "main", types);
  Push push{};
  push.rows = narrow(request, x.shape.rows());
  push.columns = narrow(request, x.shape.back());
  push.eps = static_cast<float>(request.attrs.f("eps"));
  push.offset = static_cast<float>(request.attrs.f_or("weight_offset", 0));
  auto kernel = std::make_unique<RecordedKernel>(module);
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.x = at[0];
    push.weight = weighted ? at[1] : 0;
    push.y = at[weighted ? 2 : 1];
    push.rstd = at[weighted ? 3 : 2];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

std::unique_ptr<Kernel> rms_norm_backward_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc& x = request.inputs[1];
  const bool weighted = request.inputs.size() > 3;
  const uint32_t types[] = {vulkan_type(request, x), vulkan_type_or_none(request, weighted ? 3 : -1),
                            vulkan_type(request, request.inputs[0])};
  const std::string module = std::string("rms_norm/backward_") + size_for(x.shape.back());
  const VulkanPipeline* pipeline = &backend.pipeline(module, "main", types);
  Push push{};
  push.rows = narrow(request, x.shape.rows());
  push.columns = narrow(request, x.shape.back());
  push.offset = static_cast<float>(request.attrs.f_or("weight_offset", 0));
  auto kernel = std::make_unique<RecordedKernel>(module);
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.dy = at[0];
    push.x = at[1];
    push.rstd = at[2];
    push.weight = weighted ? at[3] : 0;
    push.y = at[weighted ? 4 : 3];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
