#include <array>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

constexpr int64_t kSide = 32;    // of a workgroup's tile
constexpr int64_t kColumns = 8;  // of the kernel for few rows
constexpr int64_t kFewRows = 4;

}  // namespace

std::unique_ptr<Kernel> grouped_matmul_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t x, w, tile_expert, y;
    uint32_t n, k, tile, tiles, experts;
    uint32_t blocks_m, blocks_n;
    uint32_t four_x, four_w;
  };
  const TensorDesc &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
  const bool transposed = request.attrs.i_or("transposed", 0) != 0;
  const int64_t tile = request.attrs.i("tile");
  const bool few = tile <= kFewRows && !transposed;
  const std::array<uint32_t, 4> constants = {vulkan_type(request, x), vulkan_type_or_blocks(request, w),
                                             vulkan_type(request, y), transposed};
  const VulkanPipeline* pipeline =
      &backend.pipeline(few ? "grouped_matmul/rows" : "grouped_matmul/tile", "main", constants);
  Push push{};
  push.n = narrow(request, y.shape[1]);
  push.k = narrow(request, x.shape[1]);
  push.tile = narrow(request, tile);
  push.tiles = narrow(request, x.shape[0] / tile);
  push.experts = narrow(request, request.attrs.i("experts"));
  push.blocks_m = static_cast<uint32_t>(groups_of(push.tile, kSide));
  push.blocks_n = static_cast<uint32_t>(groups_of(push.n, few ? kColumns : kSide));
  auto kernel = std::make_unique<RecordedKernel>(few ? "grouped_matmul_rows" : "grouped_matmul_tile");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.x = at[0];
    push.w = at[1];
    push.tile_expert = at[2];
    push.y = at[3];
    push.four_x = push.k % 4 == 0 && push.x % 16 == 0;
    push.four_w = (transposed ? push.n : push.k) % 4 == 0 && push.w % 16 == 0;
    dispatch(recorder, *pipeline, push, uint64_t{push.tiles} * (few ? 1 : push.blocks_m) * push.blocks_n);
  };
  return kernel;
}

std::unique_ptr<Kernel> grouped_matmul_backward_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t dy, x, tile_expert, dw;
    uint32_t n, k, tile, tiles, experts;
    uint32_t blocks_m, blocks_n;
    uint32_t four_dy, four_x;
  };
  const TensorDesc &dy = request.inputs[0], &x = request.inputs[1];
  const std::array<uint32_t, 2> constants = {vulkan_type(request, dy), vulkan_type(request, x)};
  const VulkanPipeline* pipeline = &backend.pipeline("grouped_matmul/weights", "main", constants);
  Push push{};
  push.n = narrow(request, dy.shape[1]);
  push.k = narrow(request, x.shape[1]);
  push.tile = narrow(request, request.attrs.i("tile"));
  push.tiles = narrow(request, x.shape[0] / push.tile);
  push.experts = narrow(request, request.attrs.i("experts"));
  narrow(request, x.shape[0]);
  push.blocks_m = static_cast<uint32_t>(groups_of(push.n, kSide));
  push.blocks_n = static_cast<uint32_t>(groups_of(push.k, kSide));
  auto kernel = std::make_unique<RecordedKernel>("grouped_matmul_backward");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.dy = at[0];
    push.x = at[1];
    push.tile_expert = at[2];
    push.dw = at[3];
    push.four_dy = push.n % 4 == 0 && push.dy % 16 == 0;
    push.four_x = push.k % 4 == 0 && push.x % 16 == 0;
    dispatch(recorder, *pipeline, push, uint64_t{push.experts} * push.blocks_m * push.blocks_n);
  };
  return kernel;
}

}  // namespace hierarchos::ops
