// Linear recurrences with a matrix state: RWKV-7/8, gated delta rule, KDA, SSD, lightning attention.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// For each segment b (rows offsets[b] … offsets[b+1]-1 of the token axis, in order) and head h, with S [Nv, Nk]:
//   S ← S·(diag(exp(log_decay)) + u wᵀ) + v kᵀ,   y = S·r
// r, k, u, w [T, H, Nk]; v [T, H, Nv]; log_decay [T, H, Nk] or [T, H] (≤ 0, fp32); state [B, H, Nv, Nk] fp32;
// offsets [B+1] I32. u and w come together or not at all. Everything is computed in fp32.
struct LinearScanSpec {
  Value state, r, k, v, log_decay, offsets;
  std::optional<Value> u, w;
};
struct LinearScanResult {
  Value y;      // [T, H, Nv]
  Value state;  // after the last row of each segment; a segment without rows keeps its state. Does not alias the input.
};
LinearScanResult linear_scan(const LinearScanSpec& spec);

// Node: inputs state, r, k, v, log_decay, offsets, [u, w]; attr uw = 1 when those are there. Results y, state'.
const OpDef& linear_scan_def();
// Node: inputs dy, dstate', then the forward's inputs; results dstate, dr, dk, dv, dlog_decay, [du, dw]. States between
// are recomputed from the incoming state at a stride.
const OpDef& linear_scan_backward_def();

}  // namespace hierarchos::ops
