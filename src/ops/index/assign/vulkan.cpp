#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

struct Push {
  uint64_t to, from, count;
  int64_t strides[4];
  uint32_t extents[4];
};

struct Axis {
  int64_t extent, stride;
};

// Axes of the source without those of one element, neighbours joined where they are one run.
std::vector<Axis> joined_axes(const TensorDesc& t) {
  std::vector<Axis> axes;
  for (int a = 0; a < t.shape.rank(); ++a) {
    const Axis axis{t.shape[a], t.strides[static_cast<size_t>(a)]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().stride == axis.stride * axis.extent)
      axes.back() = {axes.back().extent * axis.extent, axis.stride};
    else
      axes.push_back(axis);
  }
  return axes;
}

}  // namespace

std::unique_ptr<Kernel> assign_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc &to = request.inputs[0], &from = request.inputs[1];
  std::vector<Axis> axes = joined_axes(from);
  const int64_t count = to.shape.elements();
  uint32_t type_to = static_cast<uint32_t>(to.dtype), type_from = static_cast<uint32_t>(from.dtype);
  const auto size = static_cast<int64_t>(size_of(to.dtype));
  auto kernel = std::make_unique<RecordedKernel>("assign");
  if (count == 0) return kernel;
  const bool bits = to.dtype == from.dtype, dense = axes.empty() || (axes.size() == 1 && axes[0].stride == 1);
  if (bits) {
    // As bits: words of 4 or 2 bytes stand for whatever the type is.
    if (size == 8) {
      for (Axis& axis : axes) axis.stride *= 2;
      axes.push_back({2, 1});
    } else if (size == 1) {
      if (!dense || count % 2 != 0)
        throw UnsupportedError("assign: no Vulkan kernel copies {} of {} with strides or an odd number of elements",
                               name_of(to.dtype), to.shape.to_string());
      axes = {{count / 2, 1}};
    }
    type_to = type_from = static_cast<uint32_t>(size >= 4 ? DType::F32 : DType::BF16);
  } else {
    vulkan_type(request, to);
    vulkan_type(request, from);
  }
  const uint32_t types[] = {type_to, type_from};
  const VulkanPipeline* strided = &backend.pipeline("assign/strided", "main", types);
  const VulkanPipeline* plain =
      bits && dense && count * size % 16 == 0 ? &backend.pipeline("assign/plain", "main", types) : nullptr;
  // The kernel walks four axes; those before are dispatches of their own.
  std::vector<Axis> outer;
  while (axes.size() > 4) {
    outer.push_back(axes.front());
    axes.erase(axes.begin());
  }
  Push push{};
  push.count = 1;
  for (size_t i = 0; i < 4; ++i) {
    const size_t missing = 4 - axes.size();
    push.extents[i] = i < missing ? 1 : narrow(request, axes[i - missing].extent);
    push.strides[i] = i < missing ? 0 : axes[i - missing].stride;
    push.count *= push.extents[i];
  }
  const int64_t from_size = size == 8 ? 4 : size == 1 ? 2 : static_cast<int64_t>(size_of(from.dtype));
  const int64_t to_size = size == 8 ? 4 : size == 1 ? 2 : size;
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) {
    Push p = push;
    p.to = at[0];
    p.from = at[1];
    if (plain && (p.to | p.from) % 16 == 0) {
      p.count = static_cast<uint64_t>(count * size / 16);
      dispatch(recorder, *plain, p, groups_of(p.count, 256));
      return;
    }
    int64_t repeats = 1;
    for (const Axis& axis : outer) repeats *= axis.extent;
    for (int64_t i = 0; i < repeats; ++i) {
      int64_t rest = i, offset = 0;
      for (size_t a = outer.size(); a-- > 0; rest /= outer[a].extent)
        offset += rest % outer[a].extent * outer[a].stride;
      p.from = at[1] + static_cast<uint64_t>(offset * from_size);
      p.to = at[0] + static_cast<uint64_t>(i * to_size) * p.count;
      dispatch(recorder, *strided, p, groups_of(p.count, 256));
    }
  };
  return kernel;
}

}  // namespace hierarchos::ops
