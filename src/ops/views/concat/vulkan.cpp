#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

// Each operand is a block of columns of the result, its own dispatch; they are independent.
std::unique_ptr<Kernel> concat_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t from, to;
    uint64_t rows, units, pitch;
  };
  const Shape& shape = request.outputs[0].shape;
  const auto axis = static_cast<int>(request.attrs.i("axis"));
  const auto size = static_cast<int64_t>(size_of(request.outputs[0].dtype));
  int64_t rows = 1, inner = 1;
  for (int a = 0; a < axis; ++a) rows *= shape[a];
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  // One unit for all: the largest that divides every operand's row, and so every place where one begins.
  int64_t common = 16;
  std::vector<int64_t> bytes;
  for (const TensorDesc& t : request.inputs) {
    bytes.push_back(t.shape[axis] * inner * size);
    while (common > 1 && bytes.back() % common != 0) common /= 2;
  }
  const uint32_t wide = copy_unit(request, common), small = copy_unit(request, common == 16 ? 4 : common);
  const VulkanPipeline* wide_pipeline = &backend.pipeline("concat/concat", "main", std::span(&wide, 1));
  const VulkanPipeline* small_pipeline = &backend.pipeline("concat/concat", "main", std::span(&small, 1));
  const int64_t pitch = shape[axis] * inner * size;
  auto kernel = std::make_unique<RecordedKernel>("concat");
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) {
    int64_t begin = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const bool aligned = (at[i] | at[bytes.size()]) % wide == 0;
      const uint32_t unit = aligned ? wide : small;
      Push push{};
      push.from = at[i];
      push.to = at[bytes.size()] + static_cast<uint64_t>(begin);
      push.rows = static_cast<uint64_t>(rows);
      push.units = static_cast<uint64_t>(bytes[i]) / unit;
      push.pitch = static_cast<uint64_t>(pitch) / unit;
      dispatch(recorder, aligned ? *wide_pipeline : *small_pipeline, push, groups_of(push.rows * push.units, 256));
      begin += bytes[i];
    }
  };
  return kernel;
}

}  // namespace hierarchos::ops
