#include "backend/backend.h"

#include "quant/layout.h"
#include "tensor/host_tensor.h"

namespace hierarchos {

TensorDesc TensorDesc::contiguous(const Type& type) {
  TensorDesc d;
  d.dtype = type.dtype;
  d.storage = type.storage;
  d.layout = type.layout;
  d.shape = type.shape;
  const auto strides = type.shape.contiguous_strides();
  std::copy(strides.begin(), strides.end(), d.strides.begin());
  return d;
}

bool TensorDesc::is_contiguous() const {
  int64_t expected = 1;
  for (int a = shape.rank() - 1; a >= 0; --a) {
    if (shape[a] == 0) return true;
    if (shape[a] != 1 && strides[static_cast<size_t>(a)] != expected) return false;
    expected *= shape[a];
  }
  return true;
}

int64_t TensorDesc::bytes() const {
  return layout == kRows16 ? rows16_bytes(storage, shape) : HostTensor::bytes_needed(dtype, shape, storage);
}

}  // namespace hierarchos
