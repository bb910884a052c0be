#include "ops/scan/selective_scan/selective_scan.h"

#include <cmath>

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 7, 7, "state, x, delta, a, b, c and offsets");
  const Shape& state = c.inputs[0].shape;
  if (state.rank() != 3 || c.inputs[1].shape.rank() != 2) c.fail("state must be [B, C, N] and x [T, C]");
  const int64_t tokens = c.inputs[1].shape[0], channels = state[1], n = state[2];
  const DType f = DType::F32;
  expect(c, 0, "state", f, state);
  expect(c, 1, "x", f, {tokens, channels});
  expect(c, 2, "delta", f, {tokens, channels});
  expect(c, 3, "a", f, {channels, n});
  expect(c, 4, "b", f, {tokens, n});
  expect(c, 5, "c", f, {tokens, n});
  expect(c, 6, "offsets", DType::I32, {state[0] + 1});
  return {Type(f, {tokens, channels}), Type(f, state)};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  throw UnsupportedError("{}: selective_scan has no gradient yet", c.graph.scope());
}

}  // namespace

SelectiveScanResult selective_scan(Value state, Value x, Value delta, Value a, Value b, Value c, Value offsets) {
  const auto r = x.graph().emit(selective_scan_def(), {state, x, delta, a, b, c, offsets});
  return {r[0], r[1]};
}

const OpDef& selective_scan_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "selective_scan";
    d.precision = Precision::Full;
    d.infer = infer;
    d.vjp = vjp;
    return d;
  }();
  return def;
}

void selective_scan_reference(const Attrs&, std::span<const RefTensor* const> in, std::span<RefTensor> out) {
  const Shape& shape = in[0]->type.shape;
  const int64_t segments = shape[0], channels = shape[1], n = shape[2];
  out[1].data = in[0]->data;
  for (int64_t s = 0; s < segments; ++s)
    for (auto t = static_cast<int64_t>(in[6]->data[static_cast<size_t>(s)]); t < static_cast<int64_t>(in[6]->data[static_cast<size_t>(s + 1)]); ++t)
      for (int64_t ch = 0; ch < channels; ++ch) {
        const double delta = in[2]->data[static_cast<size_t>(t * channels + ch)], x = in[1]->data[static_cast<size_t>(t * channels + ch)];
        double y = 0;
        for (int64_t i = 0; i < n; ++i) {
          double& h = out[1].data[static_cast<size_t>((s * channels + ch) * n + i)];
          h = std::exp(delta * in[3]->data[static_cast<size_t>(ch * n + i)]) * h + delta * in[4]->data[static_cast<size_t>(t * n + i)] * x;
          y += in[5]->data[static_cast<size_t>(t * n + i)] * h;
        }
        out[0].data[static_cast<size_t>(t * channels + ch)] = y;
      }
}

}  // namespace hierarchos::ops
