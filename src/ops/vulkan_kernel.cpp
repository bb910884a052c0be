#include "ops/vulkan_kernel.h"

#include <limits>

namespace hierarchos::ops {

uint32_t vulkan_type(const KernelRequest& request, const TensorDesc& operand) {
  if (operand.storage != Storage::Plain || operand.layout != kRowMajor)
    throw UnsupportedError("{}: no Vulkan kernel reads {} storage", request.op->name, name_of(operand.storage));
  switch (operand.dtype) {
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::I32:
      return static_cast<uint32_t>(operand.dtype);
    default:
      throw UnsupportedError("{}: no Vulkan kernel reads {}", request.op->name, name_of(operand.dtype));
  }
}

uint32_t vulkan_type_or_blocks(const KernelRequest& request, const TensorDesc& operand) {
  if (operand.storage == Storage::Plain || operand.layout != kRowMajor) return vulkan_type(request, operand);
  return 16 + static_cast<uint32_t>(operand.storage);
}

uint32_t vulkan_type_or_none(const KernelRequest& request, int input) {
  return input < 0 ? 0 : vulkan_type(request, request.inputs[static_cast<size_t>(input)]);
}

uint32_t copy_unit(const KernelRequest& request, int64_t bytes) {
  for (const uint32_t unit : {16u, 4u, 2u})
    if (bytes % unit == 0) return unit;
  throw UnsupportedError("{}: no Vulkan kernel copies rows of {} bytes", request.op->name, bytes);
}

uint32_t narrow(const KernelRequest& request, int64_t extent) {
  if (extent < 0 || extent > std::numeric_limits<int32_t>::max())
    throw UnsupportedError("{}: an extent of {} is too large for the Vulkan kernel", request.op->name, extent);
  return static_cast<uint32_t>(extent);
}

}  // namespace hierarchos::ops
