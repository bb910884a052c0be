// Sums a value over the devices of a placement group.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// y = Σ over the `devices` of mesh axis `axis` of their x, in the order of the devices. One device: a copy. Its gradient is the
// sum of the gradients. Node: attrs axis, devices.
Value all_reduce(Value x, int64_t axis, int64_t devices);
const OpDef& all_reduce_def();

}  // namespace hierarchos::ops
