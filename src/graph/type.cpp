#include "graph/type.h"

#include "quant/layout.h"
#include "tensor/host_tensor.h"

namespace hierarchos {

int64_t Type::bytes() const {
  return layout == kRows16 ? rows16_bytes(storage, shape) : HostTensor::bytes_needed(dtype, shape, storage);
}

std::string Type::to_string() const {
  std::string out(plain() || storage == Storage::Plain ? name_of(dtype) : name_of(storage));
  if (layout != kRowMajor) out += "/" + std::to_string(layout);
  return out + shape.to_string();
}

}  // namespace hierarchos
