#include "ops/attention/attention/cpu_problem.h"

#include <algorithm>

namespace hierarchos::ops {

AttentionProblem::AttentionProblem(const KernelRequest& request, int first_operand)
    : at(attention_operands(request.attrs)), first(first_operand) {
  descs_.assign(request.inputs.begin() + first, request.inputs.end());
  const Attrs& attrs = request.attrs;
  const Shape &q = desc(at.q).shape, &k = desc(at.k).shape, &v = desc(at.v).shape;
  tokens = q[0];
  heads = q[1];
  d = q[2];
  rows = k[0];
  kv_heads = k[1];
  dv = v[2];
  group = heads / kv_heads;
  scale = static_cast<float>(attrs.f_or("scale", 1));
  softcap = static_cast<float>(attrs.f_or("softcap", 0));
  logical_keys = rows;
  page = std::max<int64_t>(1, attrs.i_or("page", 0));
  table_rows = table_blocks = 0;
  if (at.block_table >= 0) {
    table_rows = desc(at.block_table).shape[0];
    table_blocks = desc(at.block_table).shape[1];
    logical_keys = table_blocks * page;
  }
  const std::string& mode = attrs.s("keys");
  keys = mode == "range" ? Keys::Range : mode == "blocks" ? Keys::Blocks : Keys::Indices;
  if (keys != Keys::Range) list_columns = desc(at.key_list).shape[1];
  if (keys == Keys::Blocks) {
    query_block = attrs.i("query_block");
    key_block = attrs.i("key_block");
  }
  if (at.bias_table >= 0) {
    bias_heads = desc(at.bias_table).shape[0];
    bias_buckets = desc(at.bias_table).shape[1];
  }
  if (at.dense_bias >= 0) dense_heads = desc(at.dense_bias).shape[0];
  // About 96 rows a tile: enough for keys that are packed once a tile to pay.
  tile = std::max<int64_t>(1, 96 / std::max<int64_t>(group, 1));
  while (tile > 8 && (tokens + tile - 1) / tile * kv_heads < 8) tile = (tile + 1) / 2;
  // Few tokens over a block table are the next tokens of as many segments.
  if (at.block_table >= 0 && tokens <= 32) tile = 1;
  tile = std::max<int64_t>(1, std::min(tile, tokens));
}

QueryRun BoundAttention::run_at(int64_t t, int64_t end) const {
  QueryRun run{t, t + 1};
  if (p.keys == AttentionProblem::Keys::Indices) return run;
  if (p.keys == AttentionProblem::Keys::Blocks) end = std::min(end, (t / p.query_block + 1) * p.query_block);
  if (p.at.block_table < 0) {
    run.end = end;
    return run;
  }
  const int32_t* segment = ints(p.at.segment);
  while (run.end < end && segment[run.end] == segment[t]) ++run.end;
  return run;
}

void BoundAttention::span_of(const QueryRun& run, int64_t* low, int64_t* high) const {
  *low = p.logical_keys;
  *high = 0;
  if (p.keys == AttentionProblem::Keys::Indices) {
    *low = 0;
    *high = p.logical_keys;
    return;
  }
  for (int64_t t = run.begin; t < run.end; ++t) {
    const int64_t begin = range_begin(t), end = range_end(t);
    if (begin >= end) continue;
    *low = std::min(*low, begin);
    *high = std::max(*high, end);
  }
}

void BoundAttention::visible(int64_t t, const KeyBlock& block, int64_t* low, int64_t* high) const {
  if (p.keys == AttentionProblem::Keys::Indices) {
    *low = 0;
    *high = block.count;
    return;
  }
  *low = std::clamp<int64_t>(range_begin(t) - block.key[0], 0, block.count);
  *high = std::clamp<int64_t>(range_end(t) - block.key[0], *low, block.count);
}

void BoundAttention::bias_and_mask(int64_t t, int64_t head, const KeyBlock& block, float* scores) const {
  if (p.at.alibi >= 0) {
    const float slope = floats(p.at.alibi)[head];
    const int64_t position = ints(p.at.positions)[t];
    for (int64_t i = 0; i < block.count; ++i) scores[i] += slope * static_cast<float>(block.key[i] - position);
  }
  if (p.at.bias_table >= 0) {
    const float* table = floats(p.at.bias_table) + (p.bias_heads == 1 ? 0 : head) * p.bias_buckets;
    for (int64_t i = 0; i < block.count; ++i) scores[i] += table[bias_bucket(t, block.key[i])];
  }
  if (p.at.dense_bias >= 0) {
    const float* bias = floats(p.at.dense_bias) + ((p.dense_heads == 1 ? 0 : head) * p.tokens + t) * p.logical_keys;
    if (block.contiguous)
      for (int64_t i = 0; i < block.count; ++i) scores[i] += bias[block.key[0] + i];
    else
      for (int64_t i = 0; i < block.count; ++i) scores[i] += bias[block.key[i]];
  }
  if (block.contiguous) {
    int64_t low, high;
    visible(t, block, &low, &high);
    std::fill(scores, scores + low, kMinusInf);
    std::fill(scores + high, scores + block.count, kMinusInf);
  } else {
    for (int64_t i = 0; i < block.count; ++i)
      if (!sees(t, block.key[i])) scores[i] = kMinusInf;
  }
}

void BoundAttention::query_offsets(const QueryRun& run, int64_t kv_head, std::vector<int64_t>& offsets) const {
  const auto& strides = p.desc(p.at.q).strides;
  offsets.clear();
  for (int64_t t = run.begin; t < run.end; ++t)
    for (int64_t g = 0; g < p.group; ++g) offsets.push_back(t * strides[0] + (kv_head * p.group + g) * strides[1]);
}

gemm::Source BoundAttention::queries(const std::vector<int64_t>& offsets) const {
  gemm::Source s = source(p.at.q);
  s.offsets = offsets.data();
  return s;
}

void BoundAttention::key_offsets(int operand, const KeyBlock& block, int64_t kv_head, int64_t* offsets) const {
  const auto& strides = p.desc(operand).strides;
  for (int64_t i = 0; i < block.count; ++i) offsets[i] = block.row[i] * strides[0] + kv_head * strides[1];
}

gemm::Source BoundAttention::source(int operand) const {
  gemm::Source s;
  s.data = data(operand);
  s.dtype = p.desc(operand).dtype;
  return s;
}

}  // namespace hierarchos::ops
