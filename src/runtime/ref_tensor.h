// Between the reference's tensors and host tensors.
#pragma once

#include "ops/operator.h"
#include "tensor/host_tensor.h"

namespace hierarchos {

RefTensor to_ref(const HostTensor& tensor);
HostTensor to_host(const RefTensor& tensor);  // rounds to the dtype; plain storage only
void round_in_place(RefTensor& tensor);       // to its dtype
// A copy of the elements that a view names.
RefTensor materialise(const RefTensor& source, const Type& type, const Shape& shape, std::span<const int64_t> strides, int64_t offset);

}  // namespace hierarchos
