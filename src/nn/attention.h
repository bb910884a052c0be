// Self-attention block: projections, positions, cache, attention, output projection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rope.h"

namespace hierarchos::nn {

// How the columns of a fused projection lie.
enum class QkvLayout : uint8_t {
  Blocks,  // all queries, all keys, all values
  Groups,  // a group a KV head: the queries that share it, its key, its value
};

struct AttentionShape {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  double scale = 1;
  double softcap = 0;
  QkvLayout layout = QkvLayout::Blocks;
  bool norm_whole = false;  // q and k are normalised over all heads together, not over each
};

struct AttentionWeights {
  std::optional<LinearWeights> qkv, q, k, v;  // either the fused projection, or three
  LinearWeights o;
  // Before the rotation. Weights are [head_dim], or [heads, head_dim], or (norm_whole) [heads · head_dim].
  std::optional<NormWeights> q_norm, k_norm;
};

// Rows of a layer's cache: written at `slots`, read through the ranges (and the block table, if any).
struct CacheView {
  Value k, v;   // states [S, kv_heads, head_dim]
  Value slots;  // [T] I32
  std::optional<Value> segment, block_table;
  int64_t page = 0;
};

struct AlibiInputs {
  Value slopes;   // [heads] fp32
  Value indices;  // [T] I32: each query's index among the keys
};

struct AttentionInputs {
  Value ranges;  // nn::attention_ranges
  std::optional<RopeTables> rope;
  bool rope_interleaved = false;
  std::optional<AlibiInputs> alibi;
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
