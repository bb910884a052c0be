#include <limits>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> scatter_add_rows_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t accumulator, rows, ids, order;
    uint64_t vocabulary;
    uint32_t tokens, columns, chunks;
    int32_t padding;
  };
  const TensorDesc &accumulator = request.inputs[0], &rows = request.inputs[1];
  const uint32_t type = vulkan_type(request, rows);
  const VulkanPipeline* pipeline = &backend.pipeline("scatter_add_rows/scatter_add_rows", "main", std::span(&type, 1));
  int64_t columns = 1;
  for (int a = 1; a < rows.shape.rank(); ++a) columns *= rows.shape[a];
  Push push{};
  push.vocabulary = static_cast<uint64_t>(accumulator.shape[0]);
  push.tokens = narrow(request, rows.shape[0]);
  push.columns = narrow(request, columns);
  push.chunks = static_cast<uint32_t>(groups_of(push.columns, 64));
  push.padding = static_cast<int32_t>(request.attrs.i_or("padding_idx", -1));
  auto kernel = std::make_unique<RecordedKernel>("scatter_add_rows");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.accumulator = at[0];
    push.rows = at[1];
    push.ids = at[2];
    push.order = at[3];
    dispatch(recorder, *pipeline, push, uint64_t{push.tokens} * push.chunks);
  };
  return kernel;
}

}  // namespace hierarchos::ops
