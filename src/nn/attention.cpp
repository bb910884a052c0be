#include "nn/attention.h"

#include <array>

#include "ops/attention/attention/attention.h"
#include "ops/attention/rope/rope.h"
#include "ops/index/scatter_rows/scatter_rows.h"
#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos::nn {

namespace {

// q, k and v of a fused projection's result [T, (heads + 2·kv_heads) · head_dim], by heads.
std::vector<Value> split_heads(Value fused, const AttentionShape& s) {
  const int64_t tokens = fused.shape()[0];
  if (s.layout == QkvLayout::Groups) {
    const int64_t queries = s.heads / s.kv_heads;
    const Value groups = ops::reshape(fused, {tokens, s.kv_heads, queries + 2, s.head_dim});
    std::vector<Value> parts = ops::split(groups, 2, {queries, 1, 1});
    parts[0] = ops::reshape(parts[0], {tokens, s.heads, s.head_dim});
    for (size_t i = 1; i < 3; ++i) parts[i] = ops::reshape(parts[i], {tokens, s.kv_heads, s.head_dim});
    return parts;
  }
  const int64_t kv = s.kv_heads * s.head_dim;
  return ops::split(fused, 1, {s.heads * s.head_dim, kv, kv});
}

Value normalised(Value x, int64_t heads, const AttentionShape& s, const NormSpec& spec, const NormWeights& weights) {
  const Shape by_head = {x.shape()[0], heads, s.head_dim};
  if (s.norm_whole) return norm(ops::reshape(x, {x.shape()[0], heads * s.head_dim}), spec, weights);
  x = ops::reshape(x, by_head);
  if (!weights.weight || weights.weight->shape().rank() == 1) return norm(x, spec, weights);
  // A weight a head.
  NormSpec bare = spec;
  bare.weight = false;
  NormWeights none;
  none.name = weights.name;
  const Value y = norm(x, bare, none);
  return ops::mul(y, spec.weight_offset == 0 ? *weights.weight : ops::add(*weights.weight, spec.weight_offset));
}

}  // namespace

AttentionBlockResult attention(Value x, const AttentionShape& shape, const AttentionWeights& weights,
                               const AttentionInputs& inputs, const NormSpec& qk_norm) {
  const int64_t tokens = x.shape()[0];
  std::vector<Value> qkv;
  if (weights.qkv) {
    qkv = split_heads(linear(x, *weights.qkv), shape);
  } else {
    const std::array three = {*weights.q, *weights.k, *weights.v};
    qkv = linears(x, three);
  }
  if (weights.q_norm) qkv[0] = normalised(qkv[0], shape.heads, shape, qk_norm, *weights.q_norm);
  if (weights.k_norm) qkv[1] = normalised(qkv[1], shape.kv_heads, shape, qk_norm, *weights.k_norm);
  Value q = ops::reshape(qkv[0], {tokens, shape.heads, shape.head_dim});
  Value k = ops::reshape(qkv[1], {tokens, shape.kv_heads, shape.head_dim});
  const Value v = ops::reshape(qkv[2], {tokens, shape.kv_heads, shape.head_dim});
  if (inputs.rope) {
    q = ops::rope(q, inputs.rope->cos, inputs.rope->sin, std::nullopt, inputs.rope_interleaved);
    k = ops::rope(k, inputs.rope->cos, inputs.rope->sin, std::nullopt, inputs.rope_interleaved);
  }

  ops::AttentionSpec spec;
  spec.q = q;
  spec.k = k;
  spec.v = v;
  spec.ranges = inputs.ranges;
  spec.scale = shape.scale;
  spec.softcap = shape.softcap;
  if (inputs.alibi) {
    spec.alibi = inputs.alibi->slopes;
    spec.positions = inputs.alibi->indices;
  }
  AttentionBlockResult result;
  if (inputs.cache) {
    const CacheView& cache = *inputs.cache;
    spec.k = ops::scatter_rows(cache.k, k, cache.slots);
    spec.v = ops::scatter_rows(cache.v, v, cache.slots);
    result.cache = {spec.k, spec.v};
    if (cache.block_table) {
      spec.segment = cache.segment;
      spec.block_table = cache.block_table;
      spec.page = cache.page;
    }
  }
  const Value heads = ops::attention(spec).out;
  result.out = linear(ops::reshape(heads, {tokens, shape.heads * shape.head_dim}), weights.o);
  return result;
}

}  // namespace hierarchos::nn
