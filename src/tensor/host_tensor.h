// A tensor in host memory: what readers of files produce and sessions take and give.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hierarchos {

class HostTensor {
 public:
  HostTensor() = default;
  // Owns zeroed memory.
  HostTensor(DType dtype, Shape shape, Storage storage = Storage::Plain);
  // Refers to memory kept alive by `owner` (a mapped file).
  HostTensor(DType dtype, Shape shape, Storage storage, std::span<const std::byte> bytes,
             std::shared_ptr<const void> owner);

  template <typename T>
  static HostTensor from(DType dtype, Shape shape, const std::vector<T>& values) {
    HostTensor t(dtype, shape);
    if (sizeof(T) != size_of(dtype) || static_cast<int64_t>(values.size()) != shape.elements())
      throw UserError("HostTensor::from: {} values of {} bytes for a tensor of type {} and shape {}", values.size(),
                      sizeof(T), name_of(dtype), shape.to_string());
    std::copy(values.begin(), values.end(), t.mutable_data<T>().begin());
    return t;
  }

  DType dtype() const { return dtype_; }
  Storage storage() const { return storage_; }
  const Shape& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> mutable_bytes();  // throws for memory that it does not own

  template <typename T>
  std::span<const T> data() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <typename T>
  std::span<T> mutable_data() {
    auto b = mutable_bytes();
    return {reinterpret_cast<T*>(b.data()), b.size() / sizeof(T)};
  }

  // Elements as doubles, whatever the type and storage (block storages are decoded).
  std::vector<double> to_doubles() const;
  // A plain tensor of another type; floating values are rounded to nearest even.
  HostTensor cast(DType dtype) const;

  static int64_t bytes_needed(DType dtype, const Shape& shape, Storage storage);

 private:
  DType dtype_ = DType::F32;
  Storage storage_ = Storage::Plain;
  Shape shape_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<std::vector<std::byte>> owned_;
};

}  // namespace hierarchos
