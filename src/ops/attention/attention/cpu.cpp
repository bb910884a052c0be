// Attention on the CPU: an online softmax over blocks of keys. A task is (tile of queries, key head, split of the
// keys); only few tiles are split, into a number of parts that the shape decides, and these are combined in order.
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

constexpr int64_t kFewRows = 8;        // queries that read keys as they lie, without packing
constexpr int64_t kLeastOfSplit = 64;  // keys

class AttentionKernel final : public CpuKernel {
 public:
  explicit AttentionKernel(const KernelRequest& request) : p_(request, 0), out_(request.outputs[0].dtype) {
    // Few tiles: the keys are split, so that decoding over a long cache uses every core. A part then takes all heads,
    // whose keys lie side by side in memory. Lists are short enough to be read by one.
    if (p_.keys == AttentionProblem::Keys::Range && p_.tiles() * p_.kv_heads < 16)
      splits_ = std::clamp<int64_t>(16 / std::max<int64_t>(1, p_.tiles()), 1,
                                    std::max<int64_t>(1, p_.logical_keys / kLeastOfSplit));
    const bool few = p_.tile * p_.group <= kFewRows;
    heads_of_task_ = splits_ > 1 && few ? p_.kv_heads : 1;
    if (!few && splits_ > 1)
      splits_ = std::max<int64_t>(1, std::min(splits_, 16 / std::max<int64_t>(1, p_.tiles() * p_.kv_heads)));
  }

  std::string name() const override { return fmt::format("attention {}", name_of(p_.desc(p_.at.k).dtype)); }

  // Partial results of the splits: outputs, then the highest score and the total.
  int64_t scratch_bytes() const override {
    if (splits_ == 1) return 0;
    return splits_ * p_.tokens * p_.heads * (p_.dv + 2) * static_cast<int64_t>(sizeof(float));
  }

  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override {
    const BoundAttention bound(p_, operands);
    float* partial = splits_ > 1 ? reinterpret_cast<float*>(operands[static_cast<size_t>(p_.at.count) + 2]) : nullptr;
    const int64_t head_groups = p_.kv_heads / heads_of_task_;
    for_tasks(pool, p_.work(), p_.tiles() * head_groups * splits_, [&](int64_t i) {
      const int64_t split = i % splits_, head = i / splits_ % head_groups * heads_of_task_,
                    tile = i / splits_ / head_groups;
      const int64_t end = std::min(p_.tokens, (tile + 1) * p_.tile);
      for (int64_t t = tile * p_.tile; t < end;) {
        const QueryRun run = bound.run_at(t, end);
        attend(bound, operands, run, head, split, partial);
        t = run.end;
      }
    });
    if (splits_ > 1) combine(pool, operands, partial);
  }

 private:
  // The running softmax of one key head's queries.
  struct Running {
    float *q, *out, *highest, *total;
  };

  // Buffers of the thread: 0 outputs, 1 scores, 2 packed probabilities, 3 packed keys or values, 4 queries.
  void attend(const BoundAttention& bound, std::span<std::byte* const> operands, const QueryRun& run,
              int64_t first_head, int64_t split, float* partial) const {
    const int64_t queries = (run.end - run.begin) * p_.group;
    const int64_t q_floats = gemm::packed_floats_a(queries, p_.d);
    const int64_t state_floats = queries * (p_.dv + 2);
    float* states = gemm::thread_buffer(0, heads_of_task_ * state_floats);
    float* packed_q = gemm::thread_buffer(4, heads_of_task_ * q_floats);
    float* scores = gemm::thread_buffer(1, queries * kKeyBlock);
    const auto running = [&](int64_t h) {
      float* out = states + h * state_floats;
      return Running{packed_q + h * q_floats, out, out + queries * p_.dv, out + queries * p_.dv + queries};
    };
    for (int64_t h = 0; h < heads_of_task_; ++h) begin(bound, run, first_head + h, split, running(h));

    int64_t key_begin = 0, key_end = p_.logical_keys;
    if (splits_ > 1) {
      int64_t low, high;
      bound.span_of(run, &low, &high);
      const int64_t each = ((high - low + splits_ - 1) / splits_ + kLeastOfSplit - 1) / kLeastOfSplit * kLeastOfSplit;
      key_begin = low + split * each;
      key_end = std::min(high, key_begin + each);
    }
    bound.for_key_blocks(run, key_begin, key_end, [&](const KeyBlock& block) {
      if (queries <= kFewRows) fetch(operands, first_head, block);
      for (int64_t h = 0; h < heads_of_task_; ++h) step(bound, run, first_head + h, block, scores, running(h));
    });

    for (int64_t h = 0; h < heads_of_task_; ++h) {
      const Running at = running(h);
      for (int64_t r = 0; r < queries; ++r) {
        const int64_t query = (run.begin + r / p_.group) * p_.heads + (first_head + h) * p_.group + r % p_.group;
        if (partial) {
          float* to = partial + (query * splits_ + split) * (p_.dv + 2);
          std::copy_n(at.out + r * p_.dv, p_.dv, to);
          to[p_.dv] = at.highest[r];
          to[p_.dv + 1] = at.total[r];
        } else {
          finish(operands, query, at.out + r * p_.dv, at.highest[r], at.total[r]);
        }
      }
    }
  }

  void begin(const BoundAttention& bound, const QueryRun& run, int64_t kv_head, int64_t split,
             const Running& at) const {
    const int64_t queries = (run.end - run.begin) * p_.group;
    std::fill_n(at.out, queries * p_.dv, 0.0f);
    for (int64_t r = 0; r < queries; ++r) {
      // A sink is one more logit, counted in the first split.
      const bool sink = p_.at.sinks >= 0 && split == 0;
      at.highest[r] = sink ? bound.floats(p_.at.sinks)[kv_head * p_.group + r % p_.group] : kMinusInf;
      at.total[r] = at.highest[r] == kMinusInf ? 0.0f : 1.0f;
    }
    thread_local std::vector<int64_t> offsets;
    bound.query_offsets(run, kv_head, offsets);
    const gemm::Source q = bound.queries(offsets);
    if (queries <= kFewRows) {
      for (int64_t r = 0; r < queries; ++r) {
        gemm::load(q.data + offsets[static_cast<size_t>(r)] * static_cast<int64_t>(size_of(q.dtype)), q.dtype, p_.d,
                   at.q + r * p_.d);
        rows::scale(at.q + r * p_.d, p_.d, p_.scale);
      }
      return;
    }
    gemm::Prologue scaled;
    scaled.scale = p_.scale;
    float* to = at.q;
    for (int64_t k0 = 0; k0 < p_.d; k0 += gemm::kDepth) {
      const int64_t some = std::min(gemm::kDepth, p_.d - k0);
      gemm::pack_a(q, 0, queries, k0, some, scaled, to);
      to += gemm::packed_floats_a(queries, some);
    }
  }

  // Asks for a block's values, which are read after its keys, and for the keys of the block that most likely comes
  // next.
  void fetch(std::span<std::byte* const> operands, int64_t first_head, const KeyBlock& block) const {
    const auto rows_of = [&](int operand, int64_t width, int64_t ahead) {
      const TensorDesc& t = p_.desc(operand);
      const auto size = static_cast<int64_t>(size_of(t.dtype));
      const int64_t bytes = heads_of_task_ * width * size;
      const std::byte* base = operands[static_cast<size_t>(operand)] + first_head * t.strides[1] * size;
      for (int64_t i = 0; i < block.count && block.row[i] + ahead < p_.rows; ++i) {
        const std::byte* row = base + (block.row[i] + ahead) * t.strides[0] * size;
        for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
      }
    };
    rows_of(p_.at.v, p_.dv, 0);
    rows_of(p_.at.k, p_.d, kKeyBlock);
  }

  // One block of keys.
  void step(const BoundAttention& bound, const QueryRun& run, int64_t kv_head, const KeyBlock& block, float* scores,
            const Running& at) const {
    const int64_t queries = (run.end - run.begin) * p_.group;
    int64_t at_keys[kKeyBlock], at_values[kKeyBlock];
    bound.key_offsets(p_.at.k, block, kv_head, at_keys);
    bound.key_offsets(p_.at.v, block, kv_head, at_values);
    gemm::Source k = bound.source(p_.at.k), v = bound.source(p_.at.v);
    k.offsets = at_keys;
    const bool few = queries <= kFewRows;
    if (few) {
      gemm::multiply_rows(at.q, p_.d, queries, k, 0, block.count, p_.d, scores, kKeyBlock);
    } else {
      const float* a = at.q;
      for (int64_t k0 = 0; k0 < p_.d; k0 += gemm::kDepth) {
        const int64_t some = std::min(gemm::kDepth, p_.d - k0);
        float* b = gemm::thread_buffer(3, gemm::packed_floats_b(block.count, some));
        gemm::pack_b(k, 0, block.count, k0, some, b);
        gemm::multiply(queries, block.count, some, a, b, scores, kKeyBlock, k0 > 0);
        a += gemm::packed_floats_a(queries, some);
      }
      if (p_.d == 0) std::fill_n(scores, queries * kKeyBlock, 0.0f);
    }
    for (int64_t r = 0; r < queries; ++r) {
      float* row = scores + r * kKeyBlock;
      if (p_.softcap != 0) rows::softcap(row, block.count, p_.softcap);
      bound.bias_and_mask(run.begin + r / p_.group, kv_head * p_.group + r % p_.group, block, row);
      const float factor = rows::softmax_step(row, block.count, &at.highest[r], &at.total[r]);
      if (factor != 1) rows::scale(at.out + r * p_.dv, p_.dv, factor);
    }
    if (few) {
      v.offsets = at_values;
      gemm::combine_rows(scores, kKeyBlock, queries, v, block.count, p_.dv, at.out, p_.dv);
      return;
    }
    gemm::Source weights;
    weights.data = reinterpret_cast<const std::byte*>(scores);
    weights.row_stride = kKeyBlock;
    v.k_offsets = at_values;
    float* a = gemm::thread_buffer(2, gemm::packed_floats_a(queries, block.count));
    float* b = gemm::thread_buffer(3, gemm::packed_floats_b(p_.dv, block.count));
    gemm::pack_a(weights, 0, queries, 0, block.count, {}, a);
    gemm::pack_b(v, 0, p_.dv, 0, block.count, b);
    gemm::multiply(queries, p_.dv, block.count, a, b, at.out, p_.dv, true);
  }

  void finish(std::span<std::byte* const> operands, int64_t query, float* out, float highest, float total) const {
    const bool empty = highest == kMinusInf;
    if (empty)
      std::fill_n(out, p_.dv, 0.0f);
    else
      rows::scale(out, p_.dv, 1 / total);
    std::byte* to = operands[static_cast<size_t>(p_.at.count)];
    gemm::store(out, p_.dv, out_, to + query * p_.dv * static_cast<int64_t>(size_of(out_)));
    reinterpret_cast<float*>(operands[static_cast<size_t>(p_.at.count) + 1])[query] =
        empty ? kMinusInf : highest + std::log(total);
  }

  void combine(ThreadPool& pool, std::span<std::byte* const> operands, float* partial) const {
    const double work = static_cast<double>(p_.tokens * p_.heads) * static_cast<double>(splits_ * p_.dv);
    for_tasks(pool, work, p_.tokens * p_.kv_heads, [&](int64_t i) {
      for (int64_t query = i * p_.group; query < (i + 1) * p_.group; ++query) {
        float* parts = partial + query * splits_ * (p_.dv + 2);
        const auto part = [&](int64_t s) { return parts + s * (p_.dv + 2); };
        float highest = kMinusInf, total = 0;
        for (int64_t s = 0; s < splits_; ++s)
          if (!(part(s)[p_.dv] <= highest)) highest = part(s)[p_.dv];
        for (int64_t s = 0; s < splits_; ++s) {
          const float factor = part(s)[p_.dv] == kMinusInf ? 0.0f : std::exp(part(s)[p_.dv] - highest);
          total += factor * part(s)[p_.dv + 1];
          if (s == 0) {
            rows::scale(parts, p_.dv, factor);
          } else {
            const float* from = part(s);
            for (int64_t c = 0; c < p_.dv; ++c) parts[c] += factor * from[c];
          }
        }
        finish(operands, query, parts, highest, total);
      }
    });
  }

  AttentionProblem p_;
  DType out_;
  int64_t splits_ = 1, heads_of_task_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> attention_cpu(CpuBackend&, const KernelRequest& request) {
  return std::make_unique<AttentionKernel>(request);
}

}  // namespace hierarchos::ops
