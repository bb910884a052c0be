#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> adamw_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t param, grad, m, v, hyper, enabled;
    uint64_t count;
    float beta1, beta2, rest1, rest2, eps, weight_decay;
  };
  const VulkanPipeline* pipeline = &backend.pipeline("adamw/adamw", "main");
  const double beta1 = request.attrs.f("beta1"), beta2 = request.attrs.f("beta2");
  Push push{};
  push.count = static_cast<uint64_t>(request.inputs[0].shape.elements());
  push.beta1 = static_cast<float>(beta1);
  push.beta2 = static_cast<float>(beta2);
  push.rest1 = static_cast<float>(1 - beta1);
  push.rest2 = static_cast<float>(1 - beta2);
  push.eps = static_cast<float>(request.attrs.f("eps"));
  push.weight_decay = static_cast<float>(request.attrs.f("weight_decay"));
  auto kernel = std::make_unique<RecordedKernel>("adamw");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.param = at[0];
    push.grad = at[1];
    push.m = at[2];
    push.v = at[3];
    push.hyper = at[4];
    push.enabled = at[5];
    dispatch(recorder, *pipeline, push, groups_of(push.count, 1024));
  };
  return kernel;
}

}  // namespace hierarchos::ops
