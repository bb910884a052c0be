#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/cpu/kernel.h"
#include "ops/operator.h"
#include "ops/sampling/process_logits/process_logits.h"

namespace hierarchos::ops {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();

float penalised(float score, int32_t count, const float* rules) {
  if (count == 0) return score;
  score = score < 0 ? score * rules[kRepetitionPenalty] : score / rules[kRepetitionPenalty];
  score -= rules[kFrequencyPenalty] * static_cast<float>(count / 2);
  return count > 1 ? score - rules[kPresencePenalty] : score;
}

// Most tokens were never seen: whole blocks of them are passed over.
void penalise(const float* x, const int32_t* counts, const float* rules, float* y, int64_t n) {
  constexpr int64_t kBlock = 32;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t end = std::min(n, i + kBlock);
    int32_t any = 0;
    for (int64_t j = i; j < end; ++j) any |= counts[j];
    for (int64_t j = i; any != 0 && j < end; ++j)
      if (counts[j] != 0) y[j] = penalised(x[j], counts[j], rules);
  }
}

struct Edits {
  const int32_t *tokens, *kinds;
  const float* values;
  int64_t count, vocab;

  template <typename Change>
  void each(LogitEdit kind, const Change& change) const {
    for (int64_t e = 0; e < count; ++e)
      if (kinds[e] == kind && tokens[e] >= 0 && tokens[e] < vocab) change(tokens[e], values[e]);
  }
};

void process_row(const float* x, const float* rules, const int32_t* counts, const Edits& edits, float* y) {
  const int64_t n = edits.vocab;
  const bool penalties =
      counts && (rules[kRepetitionPenalty] != 1 || rules[kPresencePenalty] != 0 || rules[kFrequencyPenalty] != 0);
  if (rules[kForce] != 0) {
    std::fill(y, y + n, kNever);
  } else {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
    if (penalties) {
      penalise(x, counts, rules, y, n);
    }
    edits.each(kAdd, [&](int32_t i, float v) { y[i] = penalties ? penalised(x[i] + v, counts[i], rules) : x[i] + v; });
  }
  edits.each(kBan, [&](int32_t i, float) { y[i] = kNever; });
  edits.each(kSet, [&](int32_t i, float v) { y[i] = v; });
  if (rules[kRemoveInvalid] != 0) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::isnan(y[i]) ? 0 : std::min(std::max(y[i], -kMost), kMost);
  }
  edits.each(kStretch, [&](int32_t i, float v) {
    if (std::isfinite(y[i])) y[i] += std::abs(y[i]) * v;
  });
  edits.each(kLateBan, [&](int32_t i, float) { y[i] = kNever; });
}

}  // namespace

std::unique_ptr<Kernel> process_logits_cpu(CpuBackend&, const KernelRequest& request) {
  const int64_t rows = request.inputs[0].shape[0], n = request.inputs[0].shape[1];
  const int64_t sequences = request.inputs[2].shape[0], edits = request.inputs[4].shape[1];
  return cpu::make_kernel("process_logits", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto floats = [&](size_t i, int64_t offset) { return reinterpret_cast<float*>(at[i]) + offset; };
    const auto ints = [&](size_t i, int64_t offset) { return reinterpret_cast<const int32_t*>(at[i]) + offset; };
    cpu::parallel_rows(pool, rows, n, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const int32_t sequence = *ints(3, r);
        const int32_t* counts = sequence >= 0 && sequence < sequences ? ints(2, sequence * n) : nullptr;
        process_row(floats(0, r * n), floats(1, r * kLogitRules), counts,
                    {ints(4, r * edits), ints(5, r * edits), floats(6, r * edits), edits, n}, floats(7, r * n));
      }
    });
  });
}

}  // namespace hierarchos::ops
