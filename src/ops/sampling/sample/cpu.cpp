#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "ops/cpu/kernel.h"
#include "ops/cpu/rows.h"
#include "ops/operator.h"
#include "ops/sampling/sample/rows.h"
#include "ops/sampling/sample/sample.h"

namespace hierarchos::ops {
namespace {

struct Token {
  int32_t id;
  float x;
  double weight;  // exp((x - largest) / temperature)
};

// Working memory of a thread.
struct Memory {
  std::vector<Token> tokens, order;
  std::vector<float> values;
  std::vector<int32_t> indices;
  std::vector<double> parts;
};

double total_weight(const std::vector<Token>& tokens) {
  double sum = 0;
  for (const Token& t : tokens) sum += t.weight;
  return sum;
}

// Reorders so that the first tokens in the order of `before` are the fewest whose weights reach `mass`; the last of
// them stands last among them. Returns how many, at least 1. Halves instead of sorting.
template <typename Before>
size_t fewest_that_reach(std::vector<Token>& tokens, double mass, const Before& before) {
  size_t low = 0, high = tokens.size();
  double below = 0;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    const auto at = [&](size_t i) { return tokens.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(low), at(middle), at(high), before);
    double part = 0;
    for (size_t i = low; i < middle; ++i) part += tokens[i].weight;
    if (below + part >= mass) {
      high = middle;
    } else {
      below += part;
      low = middle;
    }
  }
  return high;
}

class Row {
 public:
  Row(ThreadPool& pool, const float* x, int64_t n, const float* settings, Memory& memory)
      : pool_(pool), x_(x), n_(n), s_(settings), m_(memory), best_(cpu::argmax(x, n)), top_(x[best_]) {}

  void draw(uint32_t bits, int32_t& id, float* facts) {
    id = 0;
    facts[0] = -std::numeric_limits<float>::infinity();
    facts[1] = 0;
    if (!(top_ > -std::numeric_limits<float>::infinity())) return;
    id = static_cast<int32_t>(best_);
    if (s_[kTemperature] == 0) {
      facts[0] = 0;
      facts[1] = 1;
      return;
    }
    scale_ = 1.0 / static_cast<double>(s_[kTemperature]);
    const double u = static_cast<double>(bits) * 0x1p-32;
    if (!filtered() && std::isfinite(top_)) {
      draw_from_all(u, id, facts);
      return;
    }
    first_cut();
    filter();
    const double total = total_weight(m_.tokens), target = u * total;
    double sum = 0;
    const Token* chosen = &m_.tokens.front();
    for (const Token& t : m_.tokens) {
      if (!(t.weight > 0)) continue;
      chosen = &t;
      if ((sum += t.weight) > target) break;
    }
    id = chosen->id;
    facts[0] = static_cast<float>(std::log(chosen->weight / total));
    facts[1] = static_cast<float>(m_.tokens.size());
  }

 private:
  bool top_k() const { return s_[kTopK] > 0 && static_cast<int64_t>(s_[kTopK]) < n_; }
  bool filtered() const {
    return top_k() || s_[kTopP] < 1 || s_[kMinP] > 0 || s_[kTypicalP] < 1 || s_[kEpsilon] > 0 || s_[kEta] > 0;
  }
  double weight(float x) const {
    return x == top_ ? 1 : std::exp((static_cast<double>(x) - static_cast<double>(top_)) * scale_);
  }

  void draw_from_all(double u, int32_t& id, float* facts) {
    const double total = sum_of_parts();
    const std::vector<double>& parts = m_.parts;
    double sum = 0;
    size_t part = 0;
    while (part + 1 < parts.size() && sum + parts[part] <= u * total) sum += parts[part++];
    for (int64_t i = static_cast<int64_t>(part) * kPart; i < n_; ++i) {
      const double w = weight(x_[i]);
      if (!(w > 0)) continue;
      id = static_cast<int32_t>(i);
      if ((sum += w) > u * total) break;
    }
    facts[0] = static_cast<float>(std::log(weight(x_[id]) / total));
    facts[1] =
        static_cast<float>(cpu::gather_at_least(x_, n_, -std::numeric_limits<float>::max(), 0, values(), indices()));
  }

  // Weights of all tokens, in parts.
  double sum_of_parts() {
    m_.parts.resize(static_cast<size_t>((n_ + kPart - 1) / kPart));
    const auto add_up = [&](int64_t part, int) {
      const int64_t first = part * kPart;
      m_.parts[static_cast<size_t>(part)] =
          cpu::sum_exp_scaled(x_ + first, top_, static_cast<float>(scale_), std::min(kPart, n_ - first));
    };
    pool_.parallel_for(static_cast<int64_t>(m_.parts.size()), add_up);
    return std::accumulate(m_.parts.begin(), m_.parts.end(), 0.0);
  }

  float* values() {
    m_.values.resize(static_cast<size_t>(n_ + 64));
    return m_.values.data();
  }
  int32_t* indices() {
    m_.indices.resize(static_cast<size_t>(n_ + 64));
    return m_.indices.data();
  }

  // Values and indices of the elements from the bound on.
  int64_t gather_values(double bound) {
    // One step down, so that rounding the bound loses nothing.
    const float limit = std::nextafter(static_cast<float>(bound), -std::numeric_limits<float>::infinity());
    float* x = values();
    gathered_ = cpu::gather_at_least(x_, n_, std::max(limit, -std::numeric_limits<float>::max()), 0, x, indices());
    return gathered_;
  }

  void weigh() {
    m_.tokens.clear();
    for (size_t i = 0; i < static_cast<size_t>(gathered_); ++i)
      m_.tokens.push_back({m_.indices[i], m_.values[i], weight(m_.values[i])});
  }

  void gather(double bound) {
    gather_values(bound);
    weigh();
  }

  // The tokens that the first filter may leave, few of the row where it can be known.
  void first_cut() {
    const double top = static_cast<double>(top_);
    mass_ = -1;
    if (!std::isfinite(top_)) {
      gather(-std::numeric_limits<double>::max());
    } else if (top_k()) {
      gather(bound_of_top_k());
    } else if (s_[kTopP] < 1) {
      cut_top_p();
    } else if (s_[kMinP] > 0 && s_[kMinP] <= 1) {
      gather(top + (std::log(static_cast<double>(s_[kMinP])) - 1e-5) / scale_);
    } else {
      gather(-std::numeric_limits<double>::max());
    }
  }

  // All tokens of at most (1 - p) / n are together no more than 1 - p: they go. Mostly many more do: those above a
  // higher bound are enough if they weigh p.
  void cut_top_p() {
    const double top = static_cast<double>(top_), p = static_cast<double>(s_[kTopP]);
    const auto scale = static_cast<float>(scale_);
    const double all = sum_of_parts(), least = all * (1 - p) / static_cast<double>(n_) * 0.999;
    double inside = 0;
    for (const double factor : {1024.0, 64.0, 8.0, 1.0}) {
      const double bound =
          least > 0 ? top + (std::log(least * factor) - 1e-5) / scale_ : -std::numeric_limits<double>::max();
      const int64_t count = gather_values(bound);
      inside = cpu::sum_exp_scaled(m_.values.data(), top_, scale, count);
      if (inside >= p * all * (1 + 1e-6) && count > 0) break;
    }
    weigh();
    // What was left out is counted by its difference, so that its rounding matters little.
    mass_ = total_weight(m_.tokens) + std::max(all - inside, 0.0);
  }

  // k blocks hold k elements at least as large as the k-th largest of their maxima.
  double bound_of_top_k() {
    const auto k = static_cast<int64_t>(s_[kTopK]);
    const int64_t blocks = n_ / cpu::kScoreBlock;
    if (k > blocks / 2) return -std::numeric_limits<double>::max();
    float* largest = values();
    cpu::block_maxima(x_, n_, largest);
    std::nth_element(largest, largest + k - 1, largest + blocks, std::greater<>());
    return std::max(static_cast<double>(largest[k - 1]), -static_cast<double>(std::numeric_limits<float>::max()));
  }

  template <typename Keep>
  void keep(const Keep& keep) {
    std::erase_if(m_.tokens, [&](const Token& t) { return !keep(t); });
  }

  void filter() {
    std::vector<Token>& tokens = m_.tokens;
    std::vector<Token>& order = m_.order;
    if (top_k() && static_cast<size_t>(s_[kTopK]) < tokens.size()) {
      order = tokens;
      const auto last = order.begin() + static_cast<std::ptrdiff_t>(s_[kTopK]) - 1;
      std::nth_element(order.begin(), last, order.end(), [](const Token& a, const Token& b) { return a.x > b.x; });
      keep([limit = last->x](const Token& t) { return t.x >= limit; });
    }
    if (s_[kTopP] < 1) {
      const auto before = [](const Token& a, const Token& b) { return a.x != b.x ? a.x > b.x : a.id > b.id; };
      order = tokens;
      const double total = mass_ > 0 ? mass_ : total_weight(tokens);
      const size_t count = fewest_that_reach(order, total * static_cast<double>(s_[kTopP]), before);
      keep([&, last = order[count - 1]](const Token& t) { return !before(last, t); });
    }
    if (s_[kMinP] > 0) keep([&](const Token& t) { return t.weight >= static_cast<double>(s_[kMinP]) || t.x == top_; });
    if (s_[kTypicalP] < 1) typical();
    if (s_[kEpsilon] > 0) keep_likely(static_cast<double>(s_[kEpsilon]));
    if (s_[kEta] > 0) {
      const auto eta = static_cast<double>(s_[kEta]);
      keep_likely(std::min(eta, std::sqrt(eta) * std::exp(-entropy())));
    }
  }

  double entropy() const {
    const double total = total_weight(m_.tokens);
    double sum = 0;
    for (const Token& t : m_.tokens)
      if (t.weight > 0) sum -= t.weight / total * std::log(t.weight / total);
    return sum;
  }

  void typical() {
    const double ent = entropy(), total = total_weight(m_.tokens);
    const auto distance = [&](const Token& t) { return std::abs(-std::log(t.weight / total) - ent); };
    // While they are put in order, a token's id is its place in the list of distances.
    std::vector<Token>& order = m_.order;
    order = m_.tokens;
    std::vector<double> distances(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      distances[i] = distance(order[i]);
      order[i].id = static_cast<int32_t>(i);
    }
    const size_t count =
        fewest_that_reach(order, total * static_cast<double>(s_[kTypicalP]), [&](const Token& a, const Token& b) {
          const double da = distances[static_cast<size_t>(a.id)], db = distances[static_cast<size_t>(b.id)];
          return da != db ? da < db : a.id < b.id;
        });
    const double limit = distances[static_cast<size_t>(order[count - 1].id)];
    size_t i = 0;
    keep([&](const Token&) { return distances[i++] <= limit; });
  }

  void keep_likely(double least) {
    const double total = total_weight(m_.tokens);
    keep([&](const Token& t) { return t.weight / total >= least || t.x == top_; });
  }

  static constexpr int64_t kPart = 4096;

  ThreadPool& pool_;
  const float* x_;
  int64_t n_;
  const float* s_;
  Memory& m_;
  int64_t best_;
  float top_;
  double scale_ = 1, mass_ = -1;
  int64_t gathered_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> sample_cpu(CpuBackend&, const KernelRequest& request) {
  const int64_t rows = request.inputs[0].shape[0], n = request.inputs[0].shape[1];
  return cpu::make_kernel("sample", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto draw = [&](int64_t r, int) {
      thread_local Memory memory;
      const auto* key = reinterpret_cast<const uint32_t*>(at[2]) + 2 * r;
      const auto step = reinterpret_cast<const uint32_t*>(at[3])[r];
      const uint32_t bits = philox(uint64_t{key[0]} | uint64_t{key[1]} << 32, step, 0, 0)[0];
      Row row(pool, reinterpret_cast<const float*>(at[0]) + r * n, n,
              reinterpret_cast<const float*>(at[1]) + r * kSampleSettings, memory);
      row.draw(bits, reinterpret_cast<int32_t*>(at[4])[r], reinterpret_cast<float*>(at[5]) + 2 * r);
    };
    // The threads share a single row, or each has rows of its own.
    if (rows == 1)
      draw(0, 0);
    else
      pool.parallel_for(rows, draw);
  });
}

}  // namespace hierarchos::ops
