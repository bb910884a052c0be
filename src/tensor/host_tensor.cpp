#include "tensor/host_tensor.h"

#include <cstring>

namespace hierarchos {

int64_t HostTensor::bytes_needed(DType dtype, const Shape& shape, Storage storage) {
  int64_t elements = 1;
  for (int64_t d : shape.dims())
    if (__builtin_mul_overflow(elements, d, &elements)) throw UserError("a tensor of shape {} is too large", shape.to_string());
  int64_t bytes = 0;
  if (storage == Storage::Plain) {
    if (__builtin_mul_overflow(elements, static_cast<int64_t>(size_of(dtype)), &bytes))
      throw UserError("a tensor of shape {} is too large", shape.to_string());
    return bytes;
  }
  const int64_t block = block_elements(storage);
  if (shape.rank() == 0 || shape.back() % block != 0)
    throw UserError("shape {} does not divide into {} blocks of {} along its last axis", shape.to_string(), name_of(storage), block);
  return elements / block * block_bytes(storage);
}

HostTensor::HostTensor(DType dtype, Shape shape, Storage storage)
    : dtype_(dtype), storage_(storage), shape_(shape),
      owned_(std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes_needed(dtype, shape, storage)))) {
  bytes_ = *owned_;
}

HostTensor::HostTensor(DType dtype, Shape shape, Storage storage, std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
    : dtype_(dtype), storage_(storage), shape_(shape), bytes_(bytes), owner_(std::move(owner)) {
  if (static_cast<int64_t>(bytes.size()) != bytes_needed(dtype, shape, storage))
    throw UserError("{} bytes for a tensor of type {} and shape {}", bytes.size(), name_of(dtype), shape.to_string());
}

std::span<std::byte> HostTensor::mutable_bytes() {
  if (!owned_) throw UserError("this tensor's memory belongs to a file and cannot be written");
  return *owned_;
}

namespace {

double read_element(DType dtype, const std::byte* at) {
  const auto as = [&]<typename T>(T) {
    T v;
    std::memcpy(&v, at, sizeof(T));
    return v;
  };
  switch (dtype) {
    case DType::F64: return as(double{});
    case DType::F32: return static_cast<double>(as(float{}));
    case DType::F16: return static_cast<double>(f16_to_f32(as(uint16_t{})));
    case DType::BF16: return static_cast<double>(bf16_to_f32(as(uint16_t{})));
    case DType::I64: return static_cast<double>(as(int64_t{}));
    case DType::I32: return as(int32_t{});
    case DType::I16: return as(int16_t{});
    case DType::I8: return as(int8_t{});
    case DType::U8: return as(uint8_t{});
    case DType::Bool: return as(uint8_t{}) ? 1 : 0;
  }
  return 0;
}

void write_element(DType dtype, std::byte* at, double v) {
  const auto put = [&](auto x) { std::memcpy(at, &x, sizeof(x)); };
  switch (dtype) {
    case DType::F64: return put(v);
    case DType::F32: return put(static_cast<float>(v));
    case DType::F16: return put(f32_to_f16(static_cast<float>(round_to(DType::F16, v))));
    case DType::BF16: return put(f32_to_bf16(static_cast<float>(round_to(DType::BF16, v))));
    case DType::I64: return put(static_cast<int64_t>(v));
    case DType::I32: return put(static_cast<int32_t>(v));
    case DType::I16: return put(static_cast<int16_t>(v));
    case DType::I8: return put(static_cast<int8_t>(v));
    case DType::U8: return put(static_cast<uint8_t>(v));
    case DType::Bool: return put(static_cast<uint8_t>(v != 0));
  }
}

}  // namespace

std::vector<double> HostTensor::to_doubles() const {
  if (storage_ != Storage::Plain) throw UnsupportedError("{} blocks are decoded with quant/, not here", name_of(storage_));
  std::vector<double> out(static_cast<size_t>(shape_.elements()));
  const size_t size = size_of(dtype_);
  for (size_t i = 0; i < out.size(); ++i) out[i] = read_element(dtype_, bytes_.data() + i * size);
  return out;
}

HostTensor HostTensor::cast(DType dtype) const {
  if (dtype == dtype_ && storage_ == Storage::Plain) return *this;
  HostTensor out(dtype, shape_);
  const std::vector<double> values = to_doubles();
  const size_t size = size_of(dtype);
  auto bytes = out.mutable_bytes();
  for (size_t i = 0; i < values.size(); ++i) write_element(dtype, bytes.data() + i * size, values[i]);
  return out;
}

}  // namespace hierarchos
