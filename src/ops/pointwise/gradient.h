// The gradient of a pointwise expression, itself one expression.
#pragma once

#include "graph/vjp.h"

namespace hierarchos::ops {

std::vector<std::optional<Value>> pointwise_vjp(VjpContext& context);

}  // namespace hierarchos::ops
