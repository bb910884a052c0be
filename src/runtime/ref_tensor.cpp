#include "runtime/ref_tensor.h"

namespace hierarchos {

RefTensor to_ref(const HostTensor& tensor) {
  return {Type(tensor.dtype(), tensor.shape(), tensor.storage()), tensor.to_doubles()};
}

HostTensor to_host(const RefTensor& tensor) {
  HostTensor wide(DType::F64, tensor.type.shape);
  std::copy(tensor.data.begin(), tensor.data.end(), wide.mutable_data<double>().begin());
  return wide.cast(tensor.type.dtype);
}

void round_in_place(RefTensor& tensor) {
  if (!is_floating(tensor.type.dtype) || tensor.type.dtype == DType::F64) return;
  for (double& v : tensor.data) v = round_to(tensor.type.dtype, v);
}

RefTensor materialise(const RefTensor& source, const Type& type, const Shape& shape, std::span<const int64_t> strides,
                      int64_t offset) {
  RefTensor out{type, std::vector<double>(static_cast<size_t>(shape.elements()))};
  std::array<int64_t, Shape::kMaxRank> index{};
  for (double& v : out.data) {
    int64_t at = offset;
    for (int a = 0; a < shape.rank(); ++a) at += index[static_cast<size_t>(a)] * strides[static_cast<size_t>(a)];
    v = source.data[static_cast<size_t>(at)];
    for (int a = shape.rank() - 1; a >= 0; --a) {
      if (++index[static_cast<size_t>(a)] < shape[a]) break;
      index[static_cast<size_t>(a)] = 0;
    }
  }
  return out;
}

}  // namespace hierarchos
