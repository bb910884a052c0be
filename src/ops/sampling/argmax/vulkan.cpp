#include <algorithm>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> argmax_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t x, y, values, indices;
    uint64_t columns;
    uint32_t rows, chunks, chunk;
  };
  const TensorDesc& x = request.inputs[0];
  const uint32_t type = vulkan_type(request, x);
  const VulkanPipeline* first = &backend.pipeline("argmax/first", "main", std::span(&type, 1));
  const VulkanPipeline* second = &backend.pipeline("argmax/second", "main", std::span(&type, 1));
  Push push{};
  push.rows = narrow(request, x.shape[0]);
  push.columns = narrow(request, x.shape[1]);
  // Few long rows (decoding) are cut, so that a large device is busy.
  const uint64_t chunks = push.rows >= 64 ? 1 : std::clamp<uint64_t>(push.columns / 2048, 1, 256);
  push.chunk = static_cast<uint32_t>(groups_of(push.columns, chunks));
  push.chunks = static_cast<uint32_t>(groups_of(push.columns, std::max<uint64_t>(push.chunk, 1)));
  auto kernel = std::make_unique<RecordedKernel>("argmax");
  const int64_t half = int64_t{push.rows} * push.chunks * 4;
  if (push.chunks > 1) {
    kernel->scratch = 2 * half;
    kernel->dependent = 2;
  }
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.x = at[0];
    push.y = at[1];
    if (push.chunks > 1) {
      push.values = at[2];
      push.indices = at[2] + static_cast<uint64_t>(half);
    }
    dispatch(recorder, *first, push, uint64_t{push.rows} * push.chunks);
    if (push.chunks == 1) return;
    recorder.barrier();
    dispatch(recorder, *second, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
