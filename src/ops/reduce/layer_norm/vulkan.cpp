#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

struct Push {
  uint64_t x, weight, bias, mean, rstd, y, dy;
  uint32_t rows, columns;
  float eps;
};

const char* size_for(int64_t columns) { return columns <= 512 ? "64" : "256"; }

}  // namespace

std::unique_ptr<Kernel> layer_norm_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc& x = request.inputs[0];
  int next = 1;
  const int weight = request.attrs.i_or("weight", 0) ? next++ : -1, bias = request.attrs.i_or("bias", 0) ? next++ : -1;
  const uint32_t types[] = {vulkan_type(request, x), vulkan_type_or_none(request, weight),
                            vulkan_type_or_none(request, bias), 0};
  const std::string module = std::string("layer_norm/forward_") + size_for(x.shape.back());
  const VulkanPipeline* pipeline = &backend.pipeline(module, "main", types);
  Push push{};
  push.rows = narrow(request, x.shape.rows());
  push.columns = narrow(request, x.shape.back());
  push.eps = static_cast<float>(request.attrs.f("eps"));
  auto kernel = std::make_unique<RecordedKernel>(module);
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.x = at[0];
    push.weight = weight < 0 ? 0 : at[static_cast<size_t>(weight)];
    push.bias = bias < 0 ? 0 : at[static_cast<size_t>(bias)];
    const auto results = at.subspan(static_cast<size_t>(next));
    push.y = results[0];
    push.mean = results[1];
    push.rstd = results[2];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

std::unique_ptr<Kernel> layer_norm_backward_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc& x = request.inputs[1];
  const bool weighted = request.inputs.size() > 4;
  const uint32_t types[] = {vulkan_type(request, x), vulkan_type_or_none(request, weighted ? 4 : -1), 0,
                            vulkan_type(request, request.inputs[0])};
  const std::string module = std::string("layer_norm/backward_") + size_for(x.shape.back());
  const VulkanPipeline* pipeline = &backend.pipeline(module, "main", types);
  Push push{};
  push.rows = narrow(request, x.shape.rows());
  push.columns = narrow(request, x.shape.back());
  auto kernel = std::make_unique<RecordedKernel>(module);
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.dy = at[0];
    push.x = at[1];
    push.mean = at[2];
    push.rstd = at[3];
    push.weight = weighted ? at[4] : 0;
    push.y = at[weighted ? 5 : 4];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
