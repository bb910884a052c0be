#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> rope_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t x, cos, sin, positions, y;
    int64_t stride_t, stride_h;
    uint32_t tokens, heads, width, half;
    uint32_t table_rows;
    float sign;
  };
  const TensorDesc &x = request.inputs[0], &cos = request.inputs[1];
  const bool positions = request.inputs.size() > 3;
  const uint32_t constants[] = {vulkan_type(request, x),
                                static_cast<uint32_t>(request.attrs.i_or("interleaved", 0) != 0),
                                static_cast<uint32_t>(positions)};
  const VulkanPipeline* pipeline = &backend.pipeline("rope/rope", "main", constants);
  Push push{};
  push.stride_t = x.strides[0];
  push.stride_h = x.strides[1];
  push.tokens = narrow(request, x.shape[0]);
  push.heads = narrow(request, x.shape[1]);
  push.width = narrow(request, x.shape[2]);
  push.half = narrow(request, cos.shape[1]);
  push.table_rows = narrow(request, cos.shape[0]);
  push.sign = request.attrs.i_or("inverse", 0) ? -1.0f : 1.0f;
  const uint64_t items = uint64_t{push.tokens} * push.heads * (push.half + (push.width - 2 * push.half + 1) / 2);
  auto kernel = std::make_unique<RecordedKernel>("rope");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.x = at[0];
    push.cos = at[1];
    push.sin = at[2];
    push.positions = positions ? at[3] : 0;
    push.y = at[positions ? 4 : 3];
    dispatch(recorder, *pipeline, push, groups_of(items, 64));
  };
  return kernel;
}

}  // namespace hierarchos::ops
