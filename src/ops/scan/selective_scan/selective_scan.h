// Selective state spaces with a state a channel (Mamba: Gu and Dao 2023).
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// For each segment b (rows offsets[b] … offsets[b+1]-1) and channel c, with h [N]:
//   h ← exp(delta·a[c]) · h + delta · b · x,   y = Σ_n c[n]·h[n]
// state [B, C, N] fp32; x, delta [T, C]; a [C, N] (≤ 0, fp32); b, c [T, N]; offsets [B+1] I32. fp32 throughout.
struct SelectiveScanResult {
  Value y;      // [T, C]
  Value state;  // [B, C, N]; does not alias the input
};
SelectiveScanResult selective_scan(Value state, Value x, Value delta, Value a, Value b, Value c, Value offsets);
const OpDef& selective_scan_def();

}  // namespace hierarchos::ops
