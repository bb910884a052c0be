// What the CPU kernels of attention share: operands, which keys a group of queries sees, where those lie, and the terms
// that are added to scores.
//
// Queries are taken in tiles of tokens, and within a tile in runs that see their keys through the same segment (block
// table) and key list. Rows of a run's matrices are (token, query head of the group): all query heads of one key head
// share its keys.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ops/attention/attention/attention.h"
#include "ops/matmul/matmul/gemm.h"

namespace hierarchos::ops {

inline constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
inline constexpr int64_t kKeyBlock = 128;  // keys whose scores are in the cache at a time

struct QueryRun {
  int64_t begin = 0, end = 0;  // tokens
};

// Up to kKeyBlock logical keys, ascending within a span.
struct KeyBlock {
  int64_t count = 0;
  bool contiguous = true;  // key[i] = key[0] + i
  int64_t key[kKeyBlock];  // logical
  int64_t row[kKeyBlock];  // of k and v
};

class AttentionProblem {
 public:
  // `first`: index of q among the kernel's operands (0 forward, 3 backward).
  AttentionProblem(const KernelRequest& request, int first);

  AttentionOperands at;
  int first;
  int64_t tokens, heads, d, rows, kv_heads, dv, group;
  int64_t logical_keys;  // that a query may name
  int64_t page, table_blocks, table_rows;
  float scale, softcap;
  enum class Keys : uint8_t { Range, Blocks, Indices } keys;
  int64_t list_columns = 0, query_block = 1, key_block = 1;
  int64_t bias_buckets = 0, bias_heads = 1, dense_heads = 1;
  int64_t tile = 1;  // tokens a query tile, chosen by shape
  int64_t tiles() const { return (tokens + tile - 1) / tile; }

  // Multiplications of the forward, were every query to see every key that it may.
  double work() const {
    const int64_t seen = keys == Keys::Range ? logical_keys : std::min(logical_keys, list_columns * key_block);
    return static_cast<double>(tokens * heads) * static_cast<double>(seen * (d + dv));
  }
  const TensorDesc& desc(int operand) const { return descs_[static_cast<size_t>(operand)]; }

 private:
  std::vector<TensorDesc> descs_;  // of the forward's operands
};

// A problem with its operands' addresses, for one execution.
class BoundAttention {
 public:
  BoundAttention(const AttentionProblem& problem, std::span<std::byte* const> operands)
      : p(problem), operands_(operands) {}

  const AttentionProblem& p;

  const std::byte* data(int operand) const { return operands_[static_cast<size_t>(p.first) + static_cast<size_t>(operand)]; }
  const int32_t* ints(int operand) const { return reinterpret_cast<const int32_t*>(data(operand)); }
  const float* floats(int operand) const { return reinterpret_cast<const float*>(data(operand)); }

  // The keys in a query's range, clamped to those that exist.
  int64_t range_begin(int64_t t) const { return std::max<int64_t>(0, ints(p.at.ranges)[2 * t]); }
  int64_t range_end(int64_t t) const { return std::min<int64_t>(p.logical_keys, ints(p.at.ranges)[2 * t + 1]); }
  bool sees(int64_t t, int64_t key) const {
    return p.keys == AttentionProblem::Keys::Indices || (key >= range_begin(t) && key < range_end(t));
  }

  // The run of tokens that begins at `t`, within a tile that ends at `end`.
  QueryRun run_at(int64_t t, int64_t end) const;

  // Calls fn(block) for the run's keys in [key_begin, key_end), in order, for as many as it has.
  template <typename Fn>
  void for_key_blocks(const QueryRun& run, int64_t key_begin, int64_t key_end, Fn&& fn) const {
    KeyBlock block;
    const auto flush = [&] {
      if (block.count) fn(static_cast<const KeyBlock&>(block));
      block.count = 0;
      block.contiguous = true;
    };
    const auto add = [&](int64_t key) {
      const int64_t row = row_of(run.begin, key);
      if (row < 0) return;
      if (block.count && key != block.key[block.count - 1] + 1) block.contiguous = false;
      block.key[block.count] = key;
      block.row[block.count] = row;
      if (++block.count == kKeyBlock) flush();
    };
    const auto add_span = [&](int64_t from, int64_t to) {
      for (int64_t key = std::max(from, key_begin); key < std::min(to, key_end); ++key) add(key);
    };
    if (p.keys == AttentionProblem::Keys::Indices) {
      const int32_t* list = ints(p.at.key_list) + run.begin * p.list_columns;
      for (int64_t i = 0; i < p.list_columns; ++i)
        if (list[i] >= key_begin && list[i] < key_end) add(list[i]);
      flush();
      return;
    }
    int64_t low, high;
    span_of(run, &low, &high);
    if (p.keys == AttentionProblem::Keys::Range) {
      add_span(low, high);
    } else {
      const int32_t* list = ints(p.at.key_list) + run.begin / p.query_block * p.list_columns;
      for (int64_t i = 0; i < p.list_columns; ++i)
        if (list[i] >= 0) add_span(std::max(low, list[i] * p.key_block), std::min(high, (list[i] + 1) * p.key_block));
    }
    flush();
  }

  // Smallest interval that holds the ranges of a run's queries; all keys for lists of indices.
  void span_of(const QueryRun& run, int64_t* low, int64_t* high) const;

  // The row of k and v that holds a logical key of a token; -1 where there is none.
  int64_t row_of(int64_t t, int64_t key) const {
    if (key < 0 || key >= p.logical_keys) return -1;
    if (p.at.block_table < 0) return key;
    const int64_t segment = ints(p.at.segment)[t];
    if (segment < 0 || segment >= p.table_rows) return -1;
    const int64_t block = ints(p.at.block_table)[segment * p.table_blocks + key / p.page];
    const int64_t row = block * p.page + key % p.page;
    return block < 0 || row >= p.rows ? -1 : row;
  }

  // Keys [*low, *high) of a contiguous block that a token sees.
  void visible(int64_t t, const KeyBlock& block, int64_t* low, int64_t* high) const;

  // Adds alibi and biases to a row of scores of query (t, head), and -inf where the query does not see the key.
  void bias_and_mask(int64_t t, int64_t head, const KeyBlock& block, float* scores) const;

  int64_t bias_bucket(int64_t t, int64_t key) const {
    return std::clamp<int64_t>(key - ints(p.at.positions)[t] + p.bias_buckets / 2, 0, p.bias_buckets - 1);
  }

  // Element offsets of the queries of a run in q-like operand `operand` (0: q), for the query heads of a key head.
  void query_offsets(const QueryRun& run, int64_t kv_head, std::vector<int64_t>& offsets) const;
  gemm::Source queries(const std::vector<int64_t>& offsets) const;
  // Rows of k (1) or v (2) of a block: element offsets.
  void key_offsets(int operand, const KeyBlock& block, int64_t kv_head, int64_t* offsets) const;
  gemm::Source source(int operand) const;

 private:
  std::span<std::byte* const> operands_;
};

}  // namespace hierarchos::ops
