// Self-attention block: projections, positions, cache, attention, output projection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rope.h"

namespace hierarchos::nn {

struct AttentionShape {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  double scale = 1;
  double softcap = 0;
};

struct AttentionWeights {
  // Either one fused projection whose columns are all queries, all keys, all values; or three.
  std::optional<LinearWeights> qkv, q, k, v;
  LinearWeights o;
  std::optional<NormWeights> q_norm, k_norm;  // over head_dim, before the rotation
};

// Rows of a layer's cache: written at `slots`, read through the ranges (and the block table, if any).
struct CacheView {
  Value k, v;   // states [S, kv_heads, head_dim]
  Value slots;  // [T] I32
  std::optional<Value> segment, block_table;
  int64_t page = 0;
};

struct AttentionInputs {
  Value ranges;  // nn::attention_ranges
  std::optional<RopeTables> rope;
  bool rope_interleaved = false;
  std::optional<CacheView> cache;
};

struct AttentionBlockResult {
  Value out;                 // [T, hidden]
  std::vector<Value> cache;  // the cache's k and v after the call, when there is one
};

// x [T, hidden] → [T, hidden].
AttentionBlockResult attention(Value x, const AttentionShape& shape, const AttentionWeights& weights,
                               const AttentionInputs& inputs, const NormSpec& qk_norm = {});

}  // namespace hierarchos::nn
