#include "nn/moe.h"

#include <numeric>

#include "ops/index/gather/gather.h"
#include "ops/moe/expert_rows/expert_rows.h"
#include "ops/moe/grouped_matmul/grouped_matmul.h"
#include "ops/moe/top_k/top_k.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/views/views.h"
#include "tensor/host_tensor.h"

namespace hierarchos::nn {
namespace {

// Rows of an expert are padded to tiles: about as many as an expert gets, so that little is wasted.
int64_t tile_rows(int64_t tokens, const MoeSpec& spec) {
  int64_t tile = 1;
  while (tile < 64 && tile * spec.experts < tokens * spec.per_token) tile *= 2;
  return tile;
}

Value softmax(Value logits) {
  const Shape column = {logits.shape()[0], 1};
  const Value top = ops::stop_gradient(ops::reshape(ops::max(logits, 1, 2), column));
  const Value e = ops::exp(ops::sub(logits, top));
  return ops::div(e, ops::reshape(ops::sum(e, 1, 2), column));
}

// [T, k, experts] fp32: 1 where choice c of token t is expert e.
Value choices(Value indices, Value expert_ids) {
  const Value column = ops::reshape(indices, {indices.shape()[0], indices.shape()[1], 1});
  return ops::cast(ops::binary(PointwiseOp::Eq, column, expert_ids), DType::F32);
}

Value expert_mlps(Value rows, const std::string& act, const MoeSpec& spec, const MoeWeights& w, Value tile_expert,
                  int64_t tile) {
  Graph& graph = rows.graph();
  const auto product = [&](const char* name, Value x, Value weight) {
    Scope scope(graph, name);
    return ops::grouped_matmul({x, weight, tile_expert, tile, spec.experts});
  };
  const Value gate = product("gate", rows, w.gate), up = product("up", rows, w.up);
  return product("down", ops::mul(ops::activation(act, gate), up), w.down);
}

}  // namespace

Value expert_ids(Graph& graph, int64_t experts) {
  std::vector<int32_t> ids(static_cast<size_t>(experts));
  std::iota(ids.begin(), ids.end(), 0);
  return graph.constant(HostTensor::from(DType::I32, {experts}, ids));
}

MoeResult moe(Value x, const std::string& act, const MoeSpec& spec, const MoeWeights& w, const MoeInputs& inputs) {
  Graph& graph = x.graph();
  const int64_t tokens = x.shape()[0], hidden = x.shape()[1], k = spec.per_token, tile = tile_rows(tokens, spec);
  const Value p = softmax(ops::cast(linear(x, w.router), DType::F32));
  const Value indices = ops::top_k(ops::stop_gradient(p), k).indices;
  const Value chosen = choices(indices, inputs.expert_ids);
  Value weights = ops::sum(ops::mul(chosen, ops::reshape(p, {tokens, 1, spec.experts})), 2, 3);
  if (spec.renormalise) weights = ops::div(weights, ops::reshape(ops::sum(weights, 1, 2), {tokens, 1}));

  const Value padding = ops::reshape(ops::less(inputs.segments, ops::full(graph, Shape{}, 0, DType::I32)), {tokens, 1});
  const Value routed = ops::select(padding, ops::full(graph, Shape{}, -1, DType::I32), indices);
  const ops::ExpertRows rows = ops::expert_rows(routed, spec.experts, tile, inputs.trained);
  const Value sorted = ops::gather(x, rows.token, rows.token_order);
  const Value made = expert_mlps(sorted, act, spec, w, rows.tile_expert, tile);
  const Value back = ops::gather(made, ops::reshape(rows.row, {tokens * k}), rows.row_order);
  const Value weighted =
      ops::mul(ops::cast(ops::reshape(back, {tokens, k, hidden}), DType::F32), ops::reshape(weights, {tokens, k, 1}));
  MoeResult result;
  result.out = ops::cast(ops::sum(weighted, 1, 2), x.dtype());
  if (w.shared) {
    Value shared = mlp(x, act, *w.shared);
    if (w.shared_gate) shared = ops::mul(ops::sigmoid(linear(x, *w.shared_gate)), shared);
    result.out = ops::add(result.out, shared);
  }
  if (inputs.with_load) {
    const Value there = ops::sub(ops::full(graph, {tokens, 1}, 1), ops::cast(padding, DType::F32));
    result.load = MoeLoad{ops::sum(ops::mul(chosen, ops::reshape(there, {tokens, 1, 1})), 0, 2),
                          ops::sum(ops::mul(p, there), 0, 1)};
  }
  return result;
}

Value load_balancing_loss(const MoeLoad& total, int64_t layers, Value segments) {
  const Value padding = ops::less(segments, ops::full(segments.graph(), Shape{}, 0, DType::I32));
  const Value there = ops::sub(ops::full(segments.graph(), Shape{}, 1), ops::cast(padding, DType::F32));
  const Value rows = ops::mul(ops::sum(there), static_cast<double>(layers));
  const Value shares = ops::mul(ops::div(total.chosen, rows), ops::div(total.probabilities, rows));
  return ops::mul(ops::sum(shares), static_cast<double>(total.chosen.shape()[0]));
}

}  // namespace hierarchos::nn
