#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> random_uniform_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t step, tokens, y;
    uint32_t key[2];
    uint32_t rows, columns, blocks;
  };
  const VulkanPipeline* pipeline = &backend.pipeline("random_uniform/random_uniform", "main");
  const auto key = static_cast<uint64_t>(request.attrs.i("stream"));
  Push push{};
  push.key[0] = static_cast<uint32_t>(key);
  push.key[1] = static_cast<uint32_t>(key >> 32);
  push.rows = narrow(request, request.outputs[0].shape[0]);
  push.columns = narrow(request, request.outputs[0].shape[1]);
  push.blocks = (push.columns + 3) / 4;
  auto kernel = std::make_unique<RecordedKernel>("random_uniform");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.step = at[0];
    push.tokens = at[1];
    push.y = at[2];
    dispatch(recorder, *pipeline, push, groups_of(uint64_t{push.rows} * push.blocks, 64));
  };
  return kernel;
}

}  // namespace hierarchos::ops
