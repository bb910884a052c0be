#include "nn/linear.h"

#include "ops/matmul/matmul/matmul.h"
#include "ops/views/views.h"

namespace hierarchos::nn {

std::vector<Value> linears(Value x, std::span<const LinearWeights> weights) {
  Graph& graph = x.graph();
  std::vector<std::pair<Value, Value>> reduced;  // a, x·aᵀ
  auto reduce = [&](Value a) {
    for (const auto& [known, value] : reduced)
      if (known == a) return value;
    Scope scope(graph, "lora_A");
    reduced.emplace_back(a, ops::matmul(x, a));
    return reduced.back().second;
  };
  std::vector<Value> results;
  for (const LinearWeights& w : weights) {
    ops::MatmulSpec spec;
    spec.x1 = x;
    if (w.lora) {
      const Value u = reduce(w.lora->a);
      const bool whole = w.lora->begin == 0 && w.lora->end == u.shape().back();
      spec.x2 = whole ? u : ops::slice(u, -1, w.lora->begin, w.lora->end);
      spec.w2 = w.lora->b;
      spec.alpha2 = w.lora->scale;
    }
    Scope scope(graph, w.name);
    spec.w1 = w.transposed ? ops::transpose(w.weight) : w.weight;
    spec.bias = w.bias;
    results.push_back(ops::matmul(spec));
  }
  return results;
}

Value linear(Value x, const LinearWeights& weights) { return linears(x, {&weights, 1})[0]; }

}  // namespace hierarchos::nn
