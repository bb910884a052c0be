// Matrix products whose tiles of rows use different matrices: mixtures of experts.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// y[r] = x[r] · w[tile_expert[r / tile]]ᵀ; rows of tiles whose expert is -1 are zero.
// x [R, K], w [E, N, K] (may be a strided view with either of its last two axes contiguous), tile_expert [R / tile]
// I32. Node: inputs x, w, tile_expert; attr tile.
Value grouped_matmul(Value x, Value w, Value tile_expert, int64_t tile);
const OpDef& grouped_matmul_def();

// dw [E, N, K] = Σ over rows r of expert e of dy[r] ⊗ x[r], rows in order. Node: inputs dy, x, tile_expert; attrs tile,
// experts.
const OpDef& grouped_matmul_backward_def();

}  // namespace hierarchos::ops
