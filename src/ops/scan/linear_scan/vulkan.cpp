#include "ops/scan/linear_scan/linear_scan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

// As in scan_common.slang.
struct Args {
  uint64_t state, r, k, v, decay, offsets, u, w, y, state_out;
  uint64_t dy, dstate_out, dstate, dr, dk, dv, ddecay, du, dw;
  uint64_t checkpoints, stash, gradient;
  uint32_t tokens, heads, keys, values, segments, stride;
};

constexpr int64_t kLargest = 256;  // keys and values: what shared memory holds

// `first`: index of `state` among the inputs.
Args sizes(const KernelRequest& request, size_t first) {
  const Shape &r = request.inputs[first + 1].shape, &v = request.inputs[first + 3].shape;
  Args args{};
  args.tokens = narrow(request, r[0]);
  args.heads = narrow(request, r[1]);
  args.keys = narrow(request, r[2]);
  args.values = narrow(request, v[2]);
  args.segments = narrow(request, request.inputs[first + 5].shape[0] - 1);
  if (r[2] > kLargest || v[2] > kLargest)
    throw UnsupportedError("{}: states of {} × {}; the Vulkan kernel takes up to {} × {}", request.op->name, v[2], r[2],
                           kLargest, kLargest);
  return args;
}

std::array<uint32_t, 7> constants(const KernelRequest& request, size_t first, int dy) {
  const bool uw = request.attrs.i_or("uw", 0) != 0;
  const auto type = [&](size_t i) { return vulkan_type(request, request.inputs[first + i]); };
  return {type(1),
          type(2),
          type(3),
          uw ? type(6) : 0,
          uw ? type(7) : 0,
          dy < 0 ? 1 : vulkan_type(request, request.inputs[static_cast<size_t>(dy)]),
          static_cast<uint32_t>(request.inputs[first + 4].shape.rank() == 3)};
}

void bind(Args& args, std::span<const Address> forward, bool uw) {
  args.state = forward[0];
  args.r = forward[1];
  args.k = forward[2];
  args.v = forward[3];
  args.decay = forward[4];
  args.offsets = forward[5];
  args.u = uw ? forward[6] : 0;
  args.w = uw ? forward[7] : 0;
}

}  // namespace

std::unique_ptr<Kernel> linear_scan_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  Args args = sizes(request, 0);
  const bool uw = request.attrs.i_or("uw", 0) != 0;
  const uint32_t width = args.keys <= 32 ? 32 : args.keys <= 64 ? 64 : args.keys <= 128 ? 128 : 256;
  const uint32_t rows = width == 256 ? 24 : 64;  // of a workgroup
  const std::string module = fmt::format("linear_scan/forward_{}", width);
  const VulkanPipeline* pipeline =
      &backend.pipeline(module, "main", constants(request, 0, -1), {.argument_buffer = true});
  auto kernel = std::make_unique<RecordedKernel>(module);
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    bind(args, at, uw);
    args.y = at[uw ? 8 : 6];
    args.state_out = at[uw ? 9 : 7];
    dispatch(recorder, *pipeline, args, groups_of(args.values, rows) * args.heads * (uint64_t{args.segments} + 1));
  };
  return kernel;
}

std::unique_ptr<Kernel> linear_scan_backward_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  Args args = sizes(request, 2);
  const bool uw = request.attrs.i_or("uw", 0) != 0;
  const std::string module =
      std::max(args.keys, args.values) <= 64 ? "linear_scan/backward_64" : "linear_scan/backward_256";
  const VulkanPipeline* pipeline =
      &backend.pipeline(module, "main", constants(request, 2, 0), {.argument_buffer = true});
  // Memory is checkpoints (tokens / stride of them) and a stash of stride states a segment: least at the square root.
  const double share = static_cast<double>(args.tokens) / std::max(args.segments, 1u);
  args.stride = static_cast<uint32_t>(std::clamp(std::ceil(std::sqrt(share)), 1.0, 64.0));
  const int64_t heads = int64_t{args.heads} * args.keys * args.values * 4;
  const int64_t checkpoints = (args.tokens / args.stride + int64_t{args.segments} + 1) * heads;
  const int64_t stash = int64_t{args.segments} * (args.stride + 1) * heads;
  auto kernel = std::make_unique<RecordedKernel>(module);
  kernel->scratch = std::max<int64_t>(checkpoints + stash + args.segments * heads, 4);
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    args.dy = at[0];
    args.dstate_out = at[1];
    bind(args, at.subspan(2), uw);
    const auto results = at.subspan(uw ? 10 : 8);
    args.dstate = results[0];
    args.dr = results[1];
    args.dk = results[2];
    args.dv = results[3];
    args.ddecay = results[4];
    args.du = uw ? results[5] : 0;
    args.dw = uw ? results[6] : 0;
    args.checkpoints = results[uw ? 7 : 5];
    args.stash = args.checkpoints + static_cast<uint64_t>(checkpoints);
    args.gradient = args.stash + static_cast<uint64_t>(stash);
    dispatch(recorder, *pipeline, args, uint64_t{args.heads} * (uint64_t{args.segments} + 1));
  };
  return kernel;
}

}  // namespace hierarchos::ops
