// Linear layers: the only caller of ops::matmul outside gradients, so adapters, quantised weights and sharding hook in
// here and work for every architecture.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace hierarchos::nn {

// A low-rank update (Hu et al. 2021): y += scale · (x·aᵀ)·bᵀ.
struct Lora {
  Value a;                     // [R, in]; the A-matrices of layers that share an input are stacked here
  int64_t begin = 0, end = 0;  // this layer's rows of `a`
  Value b;                     // [out, end - begin]
  double scale = 1;
};

struct LinearWeights {
  std::string name;           // scope of the product, relative to the block: "q_proj"
  Value weight;               // [out, in], or [in, out] when transposed (GPT-2's Conv1D)
  std::optional<Value> bias;  // [out]
  bool transposed = false;
  std::optional<Lora> lora;
};

// y = x·Wᵀ + bias, and the low-rank update as the product's second term. x [.., in] → [.., out].
Value linear(Value x, const LinearWeights& weights);
// Layers that share their input: x·aᵀ is computed once for each distinct stack of A-matrices.
std::vector<Value> linears(Value x, std::span<const LinearWeights> weights);

}  // namespace hierarchos::nn
