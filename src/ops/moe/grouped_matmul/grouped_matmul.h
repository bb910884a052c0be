// Matrix products whose tiles of rows use different matrices: mixtures of experts.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// y[r] = x[r] · w_eᵀ, e = tile_expert[r / tile]; rows of tiles whose expert is -1 are zero.
// x [R, K], tile_expert [R / tile] I32. w holds the experts' matrices one after another: [experts · N, K], perhaps in
// blocks. `transposed`: y[r] = x[r] · w_e, with w [experts · K, N], plain (the gradient of x).
// Accumulates in fp32. Node: inputs x, w, tile_expert; attrs tile, experts, transposed.
struct GroupedMatmulSpec {
  Value x, w, tile_expert;
  int64_t tile = 1, experts = 1;
  bool transposed = false;
};
Value grouped_matmul(const GroupedMatmulSpec& spec);
const OpDef& grouped_matmul_def();

// dw [experts · N, K] fp32: for each expert Σ over its rows r of dy[r] ⊗ x[r], rows in order. The tiles of an expert
// stand together. Node: inputs dy [R, N], x [R, K], tile_expert; attrs tile, experts.
const OpDef& grouped_matmul_backward_def();

}  // namespace hierarchos::ops
