#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

struct Push {
  uint64_t logits, labels, loss, lse, dloss, dlogits;
  uint32_t rows, columns, chunks;
};

}  // namespace

std::unique_ptr<Kernel> cross_entropy_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc& logits = request.inputs[0];
  const uint32_t type = vulkan_type(request, logits);
  const VulkanPipeline* pipeline = &backend.pipeline("cross_entropy/forward", "main", std::span(&type, 1));
  Push push{};
  push.rows = narrow(request, logits.shape[0]);
  push.columns = narrow(request, logits.shape[1]);
  auto kernel = std::make_unique<RecordedKernel>("cross_entropy");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.logits = at[0];
    push.labels = at[1];
    push.loss = at[2];
    push.lse = at[3];
    dispatch(recorder, *pipeline, push, push.rows);
  };
  return kernel;
}

std::unique_ptr<Kernel> cross_entropy_backward_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc& logits = request.inputs[1];
  const uint32_t type = vulkan_type(request, logits);
  const VulkanPipeline* pipeline = &backend.pipeline("cross_entropy/backward", "main", std::span(&type, 1));
  Push push{};
  push.rows = narrow(request, logits.shape[0]);
  push.columns = narrow(request, logits.shape[1]);
  push.chunks = static_cast<uint32_t>(groups_of(push.columns, 1024));
  auto kernel = std::make_unique<RecordedKernel>("cross_entropy_backward");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.dloss = at[0];
    push.logits = at[1];
    push.labels = at[2];
    push.lse = at[3];
    push.dlogits = at[4];
    dispatch(recorder, *pipeline, push, uint64_t{push.rows} * push.chunks);
  };
  return kernel;
}

}  // namespace hierarchos::ops
