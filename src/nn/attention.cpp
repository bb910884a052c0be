#include "nn/attention.h"

#include <array>

#include "ops/attention/attention/attention.h"
#include "ops/attention/rope/rope.h"
#include "ops/index/scatter_rows/scatter_rows.h"
#include "ops/views/views.h"

namespace hierarchos::nn {

AttentionBlockResult attention(Value x, const AttentionShape& shape, const AttentionWeights& weights,
                               const AttentionInputs& inputs, const NormSpec& qk_norm) {
  const int64_t tokens = x.shape()[0];
  const int64_t q_width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  std::vector<Value> qkv;
  if (weights.qkv) {
    qkv = ops::split(linear(x, *weights.qkv), 1, {q_width, kv_width, kv_width});
  } else {
    const std::array three = {*weights.q, *weights.k, *weights.v};
    qkv = linears(x, three);
  }
  Value q = ops::reshape(qkv[0], {tokens, shape.heads, shape.head_dim});
  Value k = ops::reshape(qkv[1], {tokens, shape.kv_heads, shape.head_dim});
  Value v = ops::reshape(qkv[2], {tokens, shape.kv_heads, shape.head_dim});
  if (weights.q_norm) q = norm(q, qk_norm, *weights.q_norm);
  if (weights.k_norm) k = norm(k, qk_norm, *weights.k_norm);
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
  result.out = linear(ops::reshape(heads, {tokens, q_width}), weights.o);
  return result;
}

}  // namespace hierarchos::nn
