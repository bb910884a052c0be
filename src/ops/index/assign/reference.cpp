#include "ops/operator.h"

namespace hierarchos::ops {

void assign_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  outputs[0].data = inputs[1]->data;
}

}  // namespace hierarchos::ops
