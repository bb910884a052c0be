#include "ops/moe/top_k/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/common.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "scores");
  expect_floating(c, 0, "scores");
  const Shape& s = c.inputs[0].shape;
  const int64_t k = c.attrs.i("k");
  if (s.rank() != 2) c.fail("scores must be a matrix, they are {}", c.inputs[0].to_string());
  if (k < 1 || k > s[1]) c.fail("the {} largest of {} are asked for", k, s[1]);
  return {Type(c.inputs[0].dtype, {s[0], k}), Type(DType::I32, {s[0], k})};
}

}  // namespace

TopK top_k(Value x, int64_t k) {
  const auto r = x.graph().emit(top_k_def(), {x}, {{"k", k}});
  return {r[0], r[1]};
}

const OpDef& top_k_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "top_k";
    d.infer = infer;
    return d;
  }();
  return def;
}

void top_k_reference(const Attrs& attrs, std::span<const RefTensor* const> in, std::span<RefTensor> out) {
  const int64_t rows = in[0]->type.shape[0], n = in[0]->type.shape[1], k = attrs.i("k");
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t t = 0; t < rows; ++t) {
    const double* x = in[0]->data.data() + t * n;
    const auto key = [&](int64_t i) { return std::isnan(x[i]) ? -std::numeric_limits<double>::infinity() : x[i]; };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) > key(b); });
    for (int64_t i = 0; i < k; ++i) {
      out[0].data[static_cast<size_t>(t * k + i)] = x[order[static_cast<size_t>(i)]];
      out[1].data[static_cast<size_t>(t * k + i)] = static_cast<double>(order[static_cast<size_t>(i)]);
    }
  }
}

}  // namespace hierarchos::ops
