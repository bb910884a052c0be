// Attention, forward and backward, tiled with an online softmax: no T×S matrix is stored.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// Which keys a query sees. Keys have logical indices 0, 1, … within what the query's table row maps.
//   range:   query t sees logical keys [ranges[t,0], ranges[t,1]); implicit causal, window, chunk and segment masks are
//            ranges made on the host (nn::attention_ranges). A query without keys (or with -inf biases only) gives a
//            zero row and lse = -inf (the sink, if there are sinks).
//   blocks:  key_list [T/query_block, n] I32: logical key blocks of key_block keys a block of queries, -1 none,
//            intersected with the ranges.
//   indices: key_list [T, n] I32: logical keys a query, -1 none; the ranges are not consulted.
// Where a logical key lies: without a block table, row j of k and v; with block_table [G, B] I32 and segment [T] I32, row
// block_table[segment[t], j / page] · page + j % page.
struct AttentionSpec {
  Value q;       // [T, Hq, D]; may be a strided view with contiguous D (so may k and v)
  Value k;       // [S, Hk, D], Hq a multiple of Hk
  Value v;       // [S, Hk, Dv]
  Value ranges;  // [T, 2] I32
  double scale = 1;
  double softcap = 0;                     // s = c·tanh(s/c) after the scale, before any bias
  std::optional<Value> segment, block_table;
  int64_t page = 0;
  std::optional<Value> positions;         // [T] I32: the query's logical index, for alibi and bias_table
  std::optional<Value> alibi;             // [Hq] fp32 slopes: s += slope[h] · (j - positions[t])
  std::optional<Value> bias_table;        // [Hb, N] fp32, Hb 1 or Hq: s += table[h, clamp(j - positions[t] + N/2, 0, N-1)]; has a gradient
  std::optional<Value> dense_bias;        // [Hb, T, S] fp32, Hb 1 or Hq, by logical key: s += bias; has a gradient
  std::optional<Value> sinks;             // [Hq] fp32: one more logit in each softmax's denominator; has a gradient
  std::string keys = "range";             // range, blocks, indices
  std::optional<Value> key_list;
  int64_t query_block = 0, key_block = 0;
};

struct AttentionResult {
  Value out;  // [T, Hq, Dv], q's dtype, contiguous
  Value lse;  // [T, Hq] fp32: log-sum-exp of the scores, sink included
};
AttentionResult attention(const AttentionSpec& spec);

// The graph's compute type is applied to q, k and v by the builder (k and v of a block table stay as they are); biases,
// slopes, sinks and lse are fp32 always. dense_bias with a block table is [Hb, T, B·page].
// Node: inputs q, k, v, ranges, then those present of segment, block_table, positions, alibi, bias_table, dense_bias,
// sinks, key_list, in this order; attrs scale, softcap, page, keys, query_block, key_block and a 1 for each present one
// under its name. Results out, lse.
const OpDef& attention_def();
// Node: inputs dout, out, lse, then the forward's inputs; the forward's attrs. Results dq, dk, dv, then dbias_table,
// ddense_bias, dsinks for those present. Needs no block table (training attends to rows).
const OpDef& attention_backward_def();

struct AttentionOperands {
  int q = 0, k = 1, v = 2, ranges = 3, segment = -1, block_table = -1, positions = -1, alibi = -1, bias_table = -1, dense_bias = -1,
      sinks = -1, key_list = -1, count = 4;
};
AttentionOperands attention_operands(const Attrs& attrs);

}  // namespace hierarchos::ops
