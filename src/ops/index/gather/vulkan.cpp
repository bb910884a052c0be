#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> gather_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t table, ids, y;
    uint64_t vocabulary;
    uint32_t tokens, units, chunks;
  };
  const TensorDesc& table = request.inputs[0];
  const uint32_t type = vulkan_type_or_blocks(request, table);
  const int64_t tokens = request.outputs[0].shape[0],
                columns = request.outputs[0].shape.elements() / std::max<int64_t>(tokens, 1);
  const int64_t bytes = columns * static_cast<int64_t>(size_of(table.dtype));
  const uint32_t unit = copy_unit(request, bytes);
  Push push{};
  const size_t result = request.inputs.size();
  push.vocabulary = static_cast<uint64_t>(table.shape[0]);
  push.tokens = narrow(request, tokens);
  push.units = narrow(request, bytes / unit);
  push.chunks = static_cast<uint32_t>(groups_of(push.units, 256));
  auto kernel = std::make_unique<RecordedKernel>("gather");
  if (table.storage != Storage::Plain) {
    const uint32_t constants[] = {4, type};
    const VulkanPipeline* decode = &backend.pipeline("gather/blocks", "main", constants);
    push.units = narrow(request, columns / 4);
    push.chunks = static_cast<uint32_t>(groups_of(push.units, 256));
    kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
      push.table = at[0];
      push.ids = at[1];
      push.y = at[result];
      dispatch(recorder, *decode, push, uint64_t{push.tokens} * push.chunks);
    };
    return kernel;
  }
  // A view may begin anywhere: 16-byte copies only where all addresses allow them.
  const uint32_t narrow_unit = bytes % 4 == 0 ? 4 : 2;
  const VulkanPipeline* wide = &backend.pipeline("gather/gather", "main", std::span(&unit, 1));
  const VulkanPipeline* safe = &backend.pipeline("gather/gather", "main", std::span(&narrow_unit, 1));
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.table = at[0];
    push.ids = at[1];
    push.y = at[result];
    Push used = push;
    const bool aligned = (push.table | push.y) % unit == 0;
    if (!aligned) {
      used.units = push.units * (unit / narrow_unit);
      used.chunks = static_cast<uint32_t>(groups_of(used.units, 256));
    }
    dispatch(recorder, aligned ? *wide : *safe, used, uint64_t{used.tokens} * used.chunks);
  };
  return kernel;
}

}  // namespace hierarchos::ops
