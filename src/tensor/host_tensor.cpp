#include "tensor/host_tensor.h"

#include <utility>

namespace hierarchos {

int64_t HostTensor::bytes_needed(DType dtype, const Shape& shape, Storage storage) {
  const int64_t elements = shape.elements();  // cannot overflow: Shape sees to it
  int64_t bytes = 0;
  if (storage == Storage::Plain) {
    if (__builtin_mul_overflow(elements, static_cast<int64_t>(size_of(dtype)), &bytes))
      throw UserError("a tensor of shape {} is too large", shape.to_string());
    return bytes;
  }
  const int64_t block = block_elements(storage);
  if (shape.rank() == 0 || shape.back() % block != 0)
    throw UserError("shape {} does not divide into {} blocks of {} along its last axis", shape.to_string(),
                    name_of(storage), block);
  if (__builtin_mul_overflow(elements / block, block_bytes(storage), &bytes))
    throw UserError("a tensor of shape {} is too large", shape.to_string());
  return bytes;
}

HostTensor::HostTensor(DType dtype, Shape shape, Storage storage)
    : dtype_(dtype),
      storage_(storage),
      shape_(shape),
      owned_(std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes_needed(dtype, shape, storage)))) {
  bytes_ = *owned_;
}

HostTensor::HostTensor(DType dtype, Shape shape, Storage storage, std::span<const std::byte> bytes,
                       std::shared_ptr<const void> owner)
    : dtype_(dtype), storage_(storage), shape_(shape), bytes_(bytes), owner_(std::move(owner)) {
  if (static_cast<int64_t>(bytes.size()) != bytes_needed(dtype, shape, storage))
    throw UserError("{} bytes for a tensor of type {} and shape {}", bytes.size(),
                    storage == Storage::Plain ? name_of(dtype) : name_of(storage), shape.to_string());
}

std::span<std::byte> HostTensor::mutable_bytes() {
  if (!owned_) throw UserError("this tensor's memory belongs to a file and cannot be written");
  return *owned_;
}

}  // namespace hierarchos
