#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "ops/operator.h"
#include "ops/sampling/sample/sample.h"

namespace hierarchos::ops {
namespace {

constexpr double kNever = -INFINITY;

// Probabilities of scores, of which at least one is above -inf.
std::vector<double> softmax(const std::vector<double>& x) {
  const double top = *std::max_element(x.begin(), x.end());
  std::vector<double> p(x.size());
  for (size_t i = 0; i < x.size(); ++i) p[i] = x[i] == top ? 1 : std::exp(x[i] - top);
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= total;
  return p;
}

double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (double v : p)
    if (v > 0) sum -= v * std::log(v);
  return sum;
}

std::vector<size_t> order_by(size_t count, auto&& before) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), before);
  return order;
}

void filter(std::vector<double>& x, const double* s) {
  const size_t n = x.size();
  if (const auto k = static_cast<size_t>(s[kTopK]); k > 0 && k < n) {
    std::vector<double> sorted = x;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (double& v : x)
      if (v < sorted[k - 1]) v = kNever;
  }
  if (s[kTopP] < 1) {
    const std::vector<double> p = softmax(x);
    double above = 0;
    bool first = true;
    for (size_t i : order_by(n, [&](size_t a, size_t b) { return x[a] != x[b] ? x[a] > x[b] : a > b; })) {
      if (!first && above >= s[kTopP]) x[i] = kNever;
      above += p[i];
      first = false;
    }
  }
  if (s[kMinP] > 0) {
    const std::vector<double> p = softmax(x);
    const double least = s[kMinP] * *std::max_element(p.begin(), p.end());
    for (size_t i = 0; i < n; ++i)
      if (p[i] < least) x[i] = kNever;
  }
  if (s[kTypicalP] < 1) {
    const std::vector<double> p = softmax(x);
    const double ent = entropy(p);
    std::vector<double> distance(n);
    for (size_t i = 0; i < n; ++i) distance[i] = std::abs(-std::log(p[i]) - ent);
    double sum = 0, limit = INFINITY;
    for (size_t i : order_by(n, [&](size_t a, size_t b) { return distance[a] < distance[b]; })) {
      limit = distance[i];
      sum += p[i];
      if (sum >= s[kTypicalP]) break;
    }
    for (size_t i = 0; i < n; ++i)
      if (distance[i] > limit) x[i] = kNever;
  }
  for (const auto setting : {kEpsilon, kEta}) {
    if (!(s[setting] > 0)) continue;
    const std::vector<double> p = softmax(x);
    const double top = *std::max_element(p.begin(), p.end());
    double least = s[setting];
    if (setting == kEta) least = std::min(least, std::sqrt(least) * std::exp(-entropy(p)));
    for (size_t i = 0; i < n; ++i)
      if (p[i] < least && p[i] < top) x[i] = kNever;
  }
}

}  // namespace

void sample_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const auto n = static_cast<size_t>(inputs[0]->type.shape[1]);
  for (size_t r = 0; r < outputs[0].data.size(); ++r) {
    std::vector<double> x(inputs[0]->data.begin() + static_cast<int64_t>(r * n),
                          inputs[0]->data.begin() + static_cast<int64_t>((r + 1) * n));
    const double* s = inputs[1]->data.data() + r * kSampleSettings;
    for (double& v : x)
      if (std::isnan(v)) v = kNever;
    const auto best = static_cast<size_t>(std::max_element(x.begin(), x.end()) - x.begin());
    double* facts = outputs[1].data.data() + 2 * r;
    if (x[best] == kNever) {
      facts[0] = kNever;
      continue;
    }
    if (s[kTemperature] == 0) {
      outputs[0].data[r] = static_cast<double>(best);
      facts[1] = 1;
      continue;
    }
    for (double& v : x) v /= s[kTemperature];
    filter(x, s);
    const std::vector<double> p = softmax(x);
    const auto word = [&](size_t i) {
      return static_cast<uint64_t>(static_cast<uint32_t>(static_cast<int64_t>(inputs[2]->data[2 * r + i])));
    };
    const auto step = static_cast<uint32_t>(static_cast<int64_t>(inputs[3]->data[r]));
    const double u = philox(word(0) | word(1) << 32, step, 0, 0)[0] * 0x1p-32;
    double sum = 0;
    size_t chosen = n;
    for (size_t i = 0; i < n && (chosen == n || sum <= u); ++i) {
      if (x[i] == kNever) continue;
      chosen = i;
      sum += p[i];
    }
    outputs[0].data[r] = static_cast<double>(chosen);
    facts[0] = std::log(p[chosen]);
    facts[1] = static_cast<double>(std::count_if(x.begin(), x.end(), [](double v) { return v != kNever; }));
  }
}

}  // namespace hierarchos::ops
