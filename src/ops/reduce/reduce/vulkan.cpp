#include <algorithm>
#include <limits>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {
namespace {

struct Push {
  uint64_t x, y;
  uint64_t outer, inner, length;
  uint32_t chunks, chunk;
  float scale;
};

// Pieces of a reduction, by shapes alone: enough workgroups for a large device, each with enough to do.
int64_t pieces(int64_t outer, int64_t length, int64_t inner) {
  const int64_t least = inner == 1 ? 4096 : 64;  // elements a piece
  const int64_t groups = inner == 1 ? outer : outer * ((inner + 63) / 64);
  return std::clamp<int64_t>(std::min((length + least - 1) / least, 1024 / std::max<int64_t>(groups, 1)), 1, 1024);
}

}  // namespace

std::unique_ptr<Kernel> reduce_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  const TensorDesc& x = request.inputs[0];
  const std::string& kind = request.attrs.s("kind");
  int64_t outer = 1, length = 1, inner = 1;
  for (int a = 0; a < x.shape.rank(); ++a)
    (a < request.attrs.i("begin") ? outer : a < request.attrs.i("end") ? length : inner) *= x.shape[a];
  const uint32_t type_x = vulkan_type(request, x), type_y = vulkan_type(request, request.outputs[0]);
  const auto f32 = static_cast<uint32_t>(DType::F32);
  const uint32_t is_max = kind == "max";
  const int64_t chunks = pieces(outer, length, inner);
  const bool rows = inner == 1;
  const auto module_for = [&](int64_t n) {
    return rows ? (n <= 512 ? "reduce/rows_64" : "reduce/rows") : "reduce/columns";
  };

  Push first{};
  first.outer = static_cast<uint64_t>(outer);
  first.inner = static_cast<uint64_t>(inner);
  first.length = static_cast<uint64_t>(length);
  first.chunks = static_cast<uint32_t>(chunks);
  first.chunk = narrow(request, (length + chunks - 1) / chunks);
  // The mean of nothing is NaN.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  first.scale = kind != "mean" ? 1.0f : length > 0 ? static_cast<float>(1.0 / static_cast<double>(length)) : nan;
  const auto groups_for = [=](int64_t pieces_) {
    return static_cast<uint64_t>(outer * pieces_) * (rows ? 1 : groups_of(static_cast<uint64_t>(inner), 64));
  };
  const char* module = module_for(first.chunk);
  auto kernel = std::make_unique<RecordedKernel>(module);
  if (outer * inner == 0) return kernel;
  const uint32_t types[] = {type_x, chunks > 1 ? f32 : type_y, is_max};
  const VulkanPipeline* pipeline = &backend.pipeline(module, "main", types);
  if (chunks == 1) {
    kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
      first.x = at[0];
      first.y = at[1];
      dispatch(recorder, *pipeline, first, groups_for(1));
    };
    return kernel;
  }
  Push second = first;
  second.length = static_cast<uint64_t>(chunks);
  second.chunks = 1;
  second.chunk = static_cast<uint32_t>(chunks);
  first.scale = 1;
  const uint32_t joined[] = {f32, type_y, is_max};
  const VulkanPipeline* join = &backend.pipeline(module_for(chunks), "main", joined);
  kernel->scratch = outer * chunks * inner * 4;
  kernel->dependent = 2;
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    first.x = at[0];
    first.y = second.x = at[2];
    second.y = at[1];
    dispatch(recorder, *pipeline, first, groups_for(chunks));
    recorder.barrier();
    dispatch(recorder, *join, second, groups_for(1));
  };
  return kernel;
}

}  // namespace hierarchos::ops
