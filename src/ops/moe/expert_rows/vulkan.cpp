#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> expert_rows_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t experts, token, row, tile_expert, token_order, row_order;
    uint64_t counts;
    uint32_t entries, per_token, count, tile, rows, orders;
  };
  Push push{};
  push.entries = narrow(request, request.inputs[0].shape.elements());
  push.per_token = narrow(request, request.inputs[0].shape[1]);
  push.count = narrow(request, request.attrs.i("count"));
  push.tile = narrow(request, request.attrs.i("tile"));
  push.rows = narrow(request, request.outputs[0].shape[0]);
  push.orders = request.attrs.i_or("orders", 0) != 0;
  const VulkanPipeline* count = &backend.pipeline("expert_rows/count", "main");
  const VulkanPipeline* place = &backend.pipeline("expert_rows/place", "main");
  const VulkanPipeline* token_order = &backend.pipeline("expert_rows/token_order", "main");
  auto kernel = std::make_unique<RecordedKernel>("expert_rows");
  kernel->scratch = (int64_t{push.count} + 1) * 4;
  kernel->dependent = push.orders ? 3 : 2;
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.experts = at[0];
    push.token = at[1];
    push.row = at[2];
    push.tile_expert = at[3];
    if (push.orders) {
      push.token_order = at[4];
      push.row_order = at[5];
    }
    push.counts = at.back();
    dispatch(recorder, *count, push, uint64_t{push.count} + 1);
    recorder.barrier();
    dispatch(recorder, *place, push, uint64_t{push.count} + 1);
    if (!push.orders) return;
    recorder.barrier();
    dispatch(recorder, *token_order, push, 1);
  };
  return kernel;
}

}  // namespace hierarchos::ops
