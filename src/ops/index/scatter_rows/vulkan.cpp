#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> scatter_rows_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t buffer, rows, slots;
    int64_t stride;
    uint64_t places;
    uint32_t tokens, columns, chunks;
  };
  const TensorDesc &buffer = request.inputs[0], &rows = request.inputs[1];
  const uint32_t types[] = {vulkan_type(request, buffer), vulkan_type(request, rows)};
  const VulkanPipeline* pipeline = &backend.pipeline("scatter_rows/scatter_rows", "main", types);
  int64_t columns = 1;
  for (int a = 1; a < rows.shape.rank(); ++a) columns *= rows.shape[a];
  Push push{};
  push.stride = rows.strides[0];
  push.places = static_cast<uint64_t>(buffer.shape[0]);
  push.tokens = narrow(request, rows.shape[0]);
  push.columns = narrow(request, columns);
  push.chunks = static_cast<uint32_t>(groups_of(push.columns, 256));
  auto kernel = std::make_unique<RecordedKernel>("scatter_rows");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.buffer = at[0];
    push.rows = at[1];
    push.slots = at[2];
    dispatch(recorder, *pipeline, push, uint64_t{push.tokens} * push.chunks);
  };
  return kernel;
}

}  // namespace hierarchos::ops
