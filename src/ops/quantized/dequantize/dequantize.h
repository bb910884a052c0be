// Block-quantised values as plain fp32 ones.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// x of any block storage → fp32 of the same shape. Products and look-ups decode on their own; this is for everything else.
// No gradient: block-quantised weights are frozen.
Value dequantize(Value x);
const OpDef& dequantize_def();

}  // namespace hierarchos::ops
