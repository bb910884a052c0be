// Gradient of attention on the CPU. Probabilities are computed again from the scores and the saved log-sum-exp, a block
// at a time, twice: once by tiles of queries for dq (and the biases), once by tiles of keys for dk and dv. So every sum
// has one owner and a fixed order.
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "ops/attention/attention/cpu_problem.h"
#include "ops/attention/attention/rows.h"
#include "ops/cpu_tasks.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

namespace rows = attention_rows;

// Thread buffers: 0 accumulators, 1 probabilities and dscores, 2 packed A, 3 packed B, 4 packed queries, 5 packed dout,
// 6 capped scores or products that are scattered.
class AttentionBackwardKernel final : public CpuKernel {
 public:
  explicit AttentionBackwardKernel(const KernelRequest& request)
      : p_(request, 3), dout_(request.inputs[0]), out_(request.inputs[1]), results_(request.outputs) {
    if (p_.at.block_table >= 0) throw UnsupportedError("attention_backward takes no block table");
    int next = 3;
    if (p_.at.bias_table >= 0) dbias_table_ = next++;
    if (p_.at.dense_bias >= 0) ddense_bias_ = next++;
    if (p_.at.sinks >= 0) dsinks_ = next++;
    // A bias that all heads share is summed over them by the one task that owns its rows.
    heads_of_task_ = p_.at.dense_bias >= 0 && p_.dense_heads == 1 ? p_.kv_heads : 1;
    key_tiles_ = (p_.rows + kKeyBlock - 1) / kKeyBlock;
  }

  std::string name() const override { return fmt::format("attention_backward {}", name_of(p_.desc(p_.at.k).dtype)); }

  int64_t scratch_bytes() const override {
    int64_t floats = p_.tokens * p_.heads;              // delta
    if (dsinks_ >= 0) floats += p_.tiles() * p_.heads;  // a sum a tile
    if (dbias_table_ >= 0) floats += p_.tiles() * p_.heads * p_.bias_buckets;
    return floats * static_cast<int64_t>(sizeof(float));
  }

  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override {
    Execution e(*this, operands);
    const auto first = static_cast<size_t>(p_.at.count) + 3;
    if (ddense_bias_ >= 0)
      std::fill_n(reinterpret_cast<float*>(operands[first + static_cast<size_t>(ddense_bias_)]),
                  p_.dense_heads * p_.tokens * p_.logical_keys, 0.0f);
    for_tasks(pool, p_.work(), p_.tiles(), [&](int64_t tile) { deltas(e, tile); });
    const int64_t head_groups = p_.kv_heads / heads_of_task_;
    const int64_t query_tasks = p_.tiles() * head_groups;
    for_tasks(pool, 2 * p_.work(), query_tasks + key_tiles_ * p_.kv_heads, [&](int64_t i) {
      if (i < query_tasks) {
        for (int64_t h = 0; h < heads_of_task_; ++h)
          query_tile(e, i / head_groups, i % head_groups * heads_of_task_ + h);
      } else {
        key_tile(e, (i - query_tasks) / p_.kv_heads, (i - query_tasks) % p_.kv_heads);
      }
    });
    sums_of_tiles(e);
  }

 private:
  // Addresses of one execution.
  struct Execution {
    Execution(const AttentionBackwardKernel& k, std::span<std::byte* const> operands)
        : bound(k.p_, operands),
          dout(operands[0]),
          out(operands[1]),
          lse(reinterpret_cast<const float*>(operands[2])),
          results(operands.subspan(static_cast<size_t>(k.p_.at.count) + 3)) {
      if (k.scratch_bytes() > 0) delta = reinterpret_cast<float*>(operands.back());
      dsinks = delta + k.p_.tokens * k.p_.heads;
      dbias_table = dsinks + (k.dsinks_ >= 0 ? k.p_.tiles() * k.p_.heads : 0);
    }
    BoundAttention bound;
    const std::byte *dout, *out;
    const float* lse;
    std::span<std::byte* const> results;
    float *delta = nullptr, *dsinks = nullptr, *dbias_table = nullptr;
  };

  // delta[t, h] = Σ dout·out, and each tile's part of the sinks' gradient.
  void deltas(const Execution& e, int64_t tile) const {
    float *a = gemm::thread_buffer(0, p_.dv), *b = gemm::thread_buffer(1, p_.dv);
    if (dsinks_ >= 0) std::fill_n(e.dsinks + tile * p_.heads, p_.heads, 0.0f);
    for (int64_t t = tile * p_.tile; t < std::min(p_.tokens, (tile + 1) * p_.tile); ++t)
      for (int64_t h = 0; h < p_.heads; ++h) {
        const int64_t query = t * p_.heads + h;
        gemm::load(e.dout + query * p_.dv * static_cast<int64_t>(size_of(dout_.dtype)), dout_.dtype, p_.dv, a);
        gemm::load(e.out + query * p_.dv * static_cast<int64_t>(size_of(out_.dtype)), out_.dtype, p_.dv, b);
        e.delta[query] = rows::dot(a, b, p_.dv);
        if (dsinks_ >= 0 && e.lse[query] != kMinusInf)
          e.dsinks[tile * p_.heads + h] -= std::exp(e.bound.floats(p_.at.sinks)[h] - e.lse[query]) * e.delta[query];
      }
  }

  // Packed queries (scaled) and output gradients of a run.
  struct PackedRun {
    QueryRun run;
    int64_t kv_head = 0, queries = 0;
    std::vector<int64_t> q_offsets, dout_offsets;
    const float *q = nullptr, *dout = nullptr;
  };

  void pack_run(const Execution& e, const QueryRun& run, int64_t kv_head, PackedRun* packed) const {
    packed->run = run;
    packed->kv_head = kv_head;
    packed->queries = (run.end - run.begin) * p_.group;
    e.bound.query_offsets(run, kv_head, packed->q_offsets);
    packed->dout_offsets.clear();
    for (int64_t t = run.begin; t < run.end; ++t)
      for (int64_t g = 0; g < p_.group; ++g)
        packed->dout_offsets.push_back((t * p_.heads + kv_head * p_.group + g) * p_.dv);
    gemm::Prologue scaled;
    scaled.scale = p_.scale;
    packed->q = pack_rows(e.bound.queries(packed->q_offsets), packed->queries, p_.d, scaled, 4);
    packed->dout = pack_rows(dout_source(e, *packed), packed->queries, p_.dv, {}, 5);
  }

  gemm::Source dout_source(const Execution& e, const PackedRun& packed) const {
    gemm::Source s;
    s.data = e.dout;
    s.dtype = dout_.dtype;
    s.offsets = packed.dout_offsets.data();
    return s;
  }

  // A operand, kDepth columns after one another.
  static const float* pack_rows(const gemm::Source& source, int64_t count, int64_t k, const gemm::Prologue& prologue,
                                int slot) {
    float* all = gemm::thread_buffer(slot, gemm::packed_floats_a(count, k));
    float* at = all;
    for (int64_t k0 = 0; k0 < k; k0 += gemm::kDepth) {
      const int64_t some = std::min(gemm::kDepth, k - k0);
      gemm::pack_a(source, 0, count, k0, some, prologue, at);
      at += gemm::packed_floats_a(count, some);
    }
    return all;
  }

  // c [m, n] = A·Bᵀ for A from pack_rows and rows of B at offsets.
  static void product(const float* a, int64_t m, const gemm::Source& source, int64_t n, int64_t k, float* c) {
    if (k == 0) std::fill_n(c, m * kKeyBlock, 0.0f);
    for (int64_t k0 = 0; k0 < k; k0 += gemm::kDepth) {
      const int64_t some = std::min(gemm::kDepth, k - k0);
      float* b = gemm::thread_buffer(3, gemm::packed_floats_b(n, some));
      gemm::pack_b(source, 0, n, k0, some, b);
      gemm::multiply(m, n, some, a, b, c, kKeyBlock, k0 > 0);
      a += gemm::packed_floats_a(m, some);
    }
  }

  // Probabilities, and gradients of the scores before biases, of a run and a block of keys; both [queries, kKeyBlock].
  // `owner`: the pass that also sums the biases' gradients.
  void scores(const Execution& e, const PackedRun& run, const KeyBlock& block, float* p, float* ds, int64_t tile,
              bool owner) const {
    int64_t at[kKeyBlock];
    gemm::Source k = e.bound.source(p_.at.k), v = e.bound.source(p_.at.v);
    k.offsets = v.offsets = at;
    e.bound.key_offsets(p_.at.k, block, run.kv_head, at);
    product(run.q, run.queries, k, block.count, p_.d, p);
    e.bound.key_offsets(p_.at.v, block, run.kv_head, at);
    product(run.dout, run.queries, v, block.count, p_.dv, ds);
    float capped[kKeyBlock];
    for (int64_t r = 0; r < run.queries; ++r) {
      const int64_t t = run.run.begin + r / p_.group, head = run.kv_head * p_.group + r % p_.group,
                    query = t * p_.heads + head;
      float *row = p + r * kKeyBlock, *drow = ds + r * kKeyBlock;
      if (p_.softcap != 0) {
        rows::softcap(row, block.count, p_.softcap);
        std::copy_n(row, block.count, capped);
      }
      e.bound.bias_and_mask(t, head, block, row);
      rows::exp_of(row, block.count, e.lse[query]);
      rows::dscore(row, drow, block.count, e.delta[query]);
      if (owner && (dbias_table_ >= 0 || ddense_bias_ >= 0)) bias_gradients(e, t, head, block, drow, tile);
      if (p_.softcap != 0) rows::softcap_slope(capped, drow, block.count, p_.softcap);
    }
  }

  void bias_gradients(const Execution& e, int64_t t, int64_t head, const KeyBlock& block, const float* ds,
                      int64_t tile) const {
    if (dbias_table_ >= 0) {
      float* sums = e.dbias_table + (tile * p_.heads + head) * p_.bias_buckets;
      for (int64_t i = 0; i < block.count; ++i) sums[e.bound.bias_bucket(t, block.key[i])] += ds[i];
    }
    if (ddense_bias_ >= 0) {
      float* to = reinterpret_cast<float*>(e.results[static_cast<size_t>(ddense_bias_)]) +
                  ((p_.dense_heads == 1 ? 0 : head) * p_.tokens + t) * p_.logical_keys;
      for (int64_t i = 0; i < block.count; ++i) to[block.key[i]] += ds[i];
    }
  }

  void query_tile(const Execution& e, int64_t tile, int64_t kv_head) const {
    if (dbias_table_ >= 0)
      std::fill_n(e.dbias_table + (tile * p_.heads + kv_head * p_.group) * p_.bias_buckets, p_.group * p_.bias_buckets,
                  0.0f);
    const int64_t end = std::min(p_.tokens, (tile + 1) * p_.tile);
    thread_local PackedRun packed;
    for (int64_t t = tile * p_.tile; t < end;) {
      const QueryRun run = e.bound.run_at(t, end);
      t = run.end;
      pack_run(e, run, kv_head, &packed);
      const int64_t queries = packed.queries;
      float* dq = gemm::thread_buffer(0, queries * p_.d);
      std::fill_n(dq, queries * p_.d, 0.0f);
      float* p = gemm::thread_buffer(1, 2 * queries * kKeyBlock);
      float* ds = p + queries * kKeyBlock;
      e.bound.for_key_blocks(run, 0, p_.logical_keys, [&](const KeyBlock& block) {
        scores(e, packed, block, p, ds, tile, true);
        int64_t at[kKeyBlock];
        e.bound.key_offsets(p_.at.k, block, kv_head, at);
        gemm::Source k = e.bound.source(p_.at.k);
        k.k_offsets = at;
        accumulate(ds, queries, kKeyBlock, 1, block.count, k, p_.d, dq, p_.d);
      });
      rows::scale(dq, queries * p_.d, p_.scale);
      const DType dtype = results_[0].dtype;
      for (int64_t r = 0; r < queries; ++r) {
        const int64_t query = (run.begin + r / p_.group) * p_.heads + kv_head * p_.group + r % p_.group;
        gemm::store(dq + r * p_.d, p_.d, dtype, e.results[0] + query * p_.d * static_cast<int64_t>(size_of(dtype)));
      }
    }
  }

  // c [m, n] += A·B, A[i, j] at data[i·row_stride + j·k_stride] (m × k), B [k, n] given by the places of its rows.
  static void accumulate(const float* data, int64_t m, int64_t row_stride, int64_t k_stride, int64_t k,
                         const gemm::Source& source, int64_t n, float* c, int64_t ldc) {
    gemm::Source left;
    left.data = reinterpret_cast<const std::byte*>(data);
    left.row_stride = row_stride;
    left.k_stride = k_stride;
    for (int64_t k0 = 0; k0 < k; k0 += gemm::kDepth) {
      const int64_t some = std::min(gemm::kDepth, k - k0);
      float* a = gemm::thread_buffer(2, gemm::packed_floats_a(m, some));
      float* b = gemm::thread_buffer(3, gemm::packed_floats_b(n, some));
      gemm::pack_a(left, 0, m, k0, some, {}, a);
      gemm::pack_b(source, 0, n, k0, some, b);
      gemm::multiply(m, n, some, a, b, c, ldc, true);
    }
  }

  void key_tile(const Execution& e, int64_t key_tile, int64_t kv_head) const {
    const int64_t begin = key_tile * kKeyBlock, end = std::min(p_.rows, begin + kKeyBlock), count = end - begin;
    float* dk = gemm::thread_buffer(0, count * (p_.d + p_.dv));
    float* dv = dk + count * p_.d;
    std::fill_n(dk, count * (p_.d + p_.dv), 0.0f);
    thread_local PackedRun packed;
    for (int64_t tile = 0; tile < p_.tiles(); ++tile) {
      const int64_t tile_end = std::min(p_.tokens, (tile + 1) * p_.tile);
      for (int64_t t = tile * p_.tile; t < tile_end;) {
        const QueryRun run = e.bound.run_at(t, tile_end);
        t = run.end;
        bool ready = false;  // queries are packed for the first block that they see
        e.bound.for_key_blocks(run, begin, end, [&](const KeyBlock& block) {
          if (!ready) pack_run(e, run, kv_head, &packed);
          ready = true;
          const int64_t queries = packed.queries;
          float* p = gemm::thread_buffer(1, 2 * queries * kKeyBlock);
          float* ds = p + queries * kKeyBlock;
          scores(e, packed, block, p, ds, tile, false);
          gemm::Source dout = dout_source(e, packed), q = e.bound.queries(packed.q_offsets);
          dout.offsets = q.offsets = nullptr;
          dout.k_offsets = packed.dout_offsets.data();
          q.k_offsets = packed.q_offsets.data();
          if (block.contiguous) {
            const int64_t first = block.key[0] - begin;
            accumulate(p, block.count, 1, kKeyBlock, queries, dout, p_.dv, dv + first * p_.dv, p_.dv);
            accumulate(ds, block.count, 1, kKeyBlock, queries, q, p_.d, dk + first * p_.d, p_.d);
            return;
          }
          const int64_t wider = std::max(p_.d, p_.dv);
          float* some = gemm::thread_buffer(6, block.count * wider);
          scatter(p, block, begin, queries, dout, p_.dv, some, dv);
          scatter(ds, block, begin, queries, q, p_.d, some, dk);
        });
      }
    }
    rows::scale(dk, count * p_.d, p_.scale);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t row = (begin + j) * p_.kv_heads + kv_head;
      const DType tk = results_[1].dtype, tv = results_[2].dtype;
      gemm::store(dk + j * p_.d, p_.d, tk, e.results[1] + row * p_.d * static_cast<int64_t>(size_of(tk)));
      gemm::store(dv + j * p_.dv, p_.dv, tv, e.results[2] + row * p_.dv * static_cast<int64_t>(size_of(tv)));
    }
  }

  static void scatter(const float* weights, const KeyBlock& block, int64_t begin, int64_t queries,
                      const gemm::Source& source, int64_t n, float* some, float* to) {
    std::fill_n(some, block.count * n, 0.0f);
    accumulate(weights, block.count, 1, kKeyBlock, queries, source, n, some, n);
    for (int64_t i = 0; i < block.count; ++i) {
      float* row = to + (block.key[i] - begin) * n;
      for (int64_t c = 0; c < n; ++c) row[c] += some[i * n + c];
    }
  }

  // Adds up, in order, what each tile summed.
  void sums_of_tiles(const Execution& e) const {
    const int64_t tiles = p_.tiles();
    if (dsinks_ >= 0) {
      float* to = reinterpret_cast<float*>(e.results[static_cast<size_t>(dsinks_)]);
      std::fill_n(to, p_.heads, 0.0f);
      for (int64_t tile = 0; tile < tiles; ++tile)
        for (int64_t h = 0; h < p_.heads; ++h) to[h] += e.dsinks[tile * p_.heads + h];
    }
    if (dbias_table_ < 0) return;
    float* to = reinterpret_cast<float*>(e.results[static_cast<size_t>(dbias_table_)]);
    std::fill_n(to, p_.bias_heads * p_.bias_buckets, 0.0f);
    for (int64_t tile = 0; tile < tiles; ++tile)
      for (int64_t h = 0; h < p_.heads; ++h) {
        const float* from = e.dbias_table + (tile * p_.heads + h) * p_.bias_buckets;
        float* row = to + (p_.bias_heads == 1 ? 0 : h) * p_.bias_buckets;
        for (int64_t b = 0; b < p_.bias_buckets; ++b) row[b] += from[b];
      }
  }

  AttentionProblem p_;
  TensorDesc dout_, out_;
  std::vector<TensorDesc> results_;
  int dbias_table_ = -1, ddense_bias_ = -1, dsinks_ = -1;
  int64_t heads_of_task_ = 1, key_tiles_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> attention_backward_cpu(CpuBackend&, const KernelRequest& request) {
  return std::make_unique<AttentionBackwardKernel>(request);
}

}  // namespace hierarchos::ops
