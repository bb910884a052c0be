#include "models/hierarchos/cell.h"

#include <cmath>
#include <numeric>

#include "ops/matmul/matmul/matmul.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/layer_norm/layer_norm.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/scan/linear_scan/linear_scan.h"
#include "ops/views/views.h"

namespace hierarchos::models {
namespace {

constexpr double kNormEps = 1e-5, kGroupNormEps = 64e-5;

// x·w for matrices that are stored [in, out].
Value times(Value x, Value w) { return ops::matmul(x, ops::transpose(w)); }

Value one_plus(Value x) { return ops::add(x, 1.0); }

}  // namespace

int64_t low_rank(int64_t width, double scale) {
  if (width < 128) return 8;
  return std::max<int64_t>(32, 32 * static_cast<int64_t>(std::nearbyint(scale * std::sqrt(static_cast<double>(width)) / 32)));
}

CellResult cell(const CellConfig& config, const CellWeights& weight, Value x, const CellState& state, Value modulation) {
  Graph& g = x.graph();
  const int64_t rows = x.shape()[0], width = config.width, size = config.head_size, heads = width / size;
  const auto by_head = [&](Value t) { return ops::reshape(t, {rows, heads, size}); };

  const Value n1 = ops::layer_norm(x, weight("ln1.weight"), weight("ln1.bias"), kNormEps);
  const Value back = ops::sub(state.tm, n1);
  const auto shifted = [&](const char* name) { return ops::add(n1, ops::mul(back, weight(name))); };
  const Value r = ops::matmul(shifted("x_r"), weight("receptance.weight"));
  const Value k0 = ops::matmul(shifted("x_k"), weight("key.weight"));
  const Value v = ops::matmul(shifted("x_v"), weight("value.weight"));
  const Value rate = ops::sigmoid(ops::add(times(times(shifted("x_a"), weight("a1")), weight("a2")), weight("a0")));
  const Value gate = times(ops::sigmoid(times(shifted("x_g"), weight("g1"))), weight("g2"));
  const Value pre = ops::add(times(ops::tanh(times(shifted("x_w"), weight("w1"))), weight("w2")), weight("w0"));
  // w ≤ -0.5, so that the decay exp(-exp(w)) lies in (0.54, 1).
  const Value w = ops::add(ops::neg(ops::softplus(ops::neg(pre))), -0.5);
  const Value log_decay = ops::neg(ops::exp(ops::clamp(w, -60, 30)));

  const Value removal = by_head(ops::mul(k0, weight("k_k")));
  const Value norm = ops::sqrt(ops::reshape(ops::sum(ops::square(removal), 2, 3), {rows, heads, 1}));
  const Value unit = ops::div(removal, ops::binary(PointwiseOp::Max, norm, ops::full(g, {}, 1e-12)));
  const Value k = by_head(ops::mul(k0, one_plus(ops::mul(ops::add(rate, -1.0), weight("k_a")))));

  // One token a row: segment b is row b.
  std::vector<int32_t> offsets(static_cast<size_t>(rows) + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  ops::LinearScanSpec spec;
  spec.state = state.matrix;
  spec.r = by_head(r);
  spec.k = k;
  spec.v = by_head(v);
  spec.log_decay = by_head(log_decay);
  spec.offsets = g.constant(HostTensor::from(DType::I32, {rows + 1}, offsets));
  spec.u = ops::neg(unit);
  spec.w = ops::mul(unit, by_head(rate));
  const ops::LinearScanResult scan = ops::linear_scan(spec);

  const Value grouped = ops::reshape(ops::layer_norm(scan.y, std::nullopt, std::nullopt, kGroupNormEps), {rows, width});
  const Value mixed = ops::add(ops::mul(grouped, weight("ln_x.weight")), weight("ln_x.bias"));
  const Value agreement = ops::sum(ops::mul(ops::mul(by_head(r), k), weight("r_k")), 2, 3);
  const Value bonus = ops::reshape(ops::mul(by_head(v), ops::reshape(agreement, {rows, heads, 1})), {rows, width});
  const Value middle = ops::add(x, ops::matmul(ops::mul(ops::add(mixed, bonus), gate), weight("output.weight")));

  const Value n2 = ops::layer_norm(middle, weight("ln2.weight"), weight("ln2.bias"), kNormEps);
  Value key = ops::matmul(ops::add(n2, ops::mul(ops::sub(state.cm, n2), weight("x_k_cm"))), weight("key_cm.weight"));
  const double kc = config.key_clamp, dc = config.deepembed_clamp;
  if (kc > 0) key = ops::clamp(key, -kc, kc);
  Value f = ops::mul(ops::square(ops::relu(key)), dc > 0 ? ops::clamp(modulation, -dc, dc) : modulation);
  if (kc > 0 && dc > 0) f = ops::clamp(f, -kc * kc * dc, kc * kc * dc);
  const Value y = ops::add(middle, ops::matmul(f, weight("value_cm.weight")));

  const auto limit = [&](Value t) { return ops::clamp(t, -config.state_clamp, config.state_clamp); };
  return {y, {limit(n1), limit(n2), limit(v), limit(y), limit(scan.state)}};
}

}  // namespace hierarchos::models
