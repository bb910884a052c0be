// Matrix products: epilogue(Σ prologueᵢ(xᵢ)·Wᵢᵀ), up to two products. Accumulates in fp32.
//
// nn::linear is the only caller besides gradients: adapters, quantised weights and sharding hook in there.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// Node: inputs, in this order, those that the attributes say are there:
//   x1 [.., M, K1], w1 [.., N, K1]                       always
//   x2 [.., M, K2], w2 [.., N, K2]                       attr products = 2
//   row_scale [M] fp32                                   attr row_scale = 1: multiplies row m of the first product
//   norm_weight [K1]                                     attr norm_weight = 1: x1's columns × (norm_weight + norm_offset)
//   bias [N]                                             attr bias = 1
//   bias2 [N]                                            attr bias2 = 1 (only with combine = "gate")
//   residual [.., M, N]                                  attr residual = 1
// Attributes: products (1), combine ("sum" | "gate"), act ("none", "silu", "gelu", "gelu_tanh", "relu", "relu2", "tanh",
//   "sigmoid"), alpha (1), alpha2 (1), softcap (0 = none), out_dtype (DType number; default x1's), norm_offset (0).
// p1 = alpha · x1·w1ᵀ, p2 = alpha2 · x2·w2ᵀ.
//   sum:  y = softcap(act(p1 + p2 + bias)) + residual,  softcap(t) = c·tanh(t/c)
//   gate: y = act(p1 + bias) · (p2 + bias2) + residual
// x and w may be strided matrices with either of their last two axes contiguous (so transposes cost nothing); leading
// axes are batch axes, equal, or absent in w (shared). w may have block storage. The result may take over residual's
// memory when the planner finds it dead (kernels read residual[m, n] before they write y[m, n]).
// K = 0 gives zeros (then bias and residual); M or N = 0 gives an empty result.
struct MatmulSpec {
  Value x1, w1;
  std::optional<Value> x2, w2, row_scale, norm_weight, bias, bias2, residual;
  std::string combine = "sum";
  std::string act = "none";
  double alpha = 1, alpha2 = 1, softcap = 0, norm_offset = 0;
  std::optional<DType> out_dtype;
};
Value matmul(const MatmulSpec& spec);
// x·wᵀ
Value matmul(Value x, Value w);

const OpDef& matmul_def();

// The operands of a matmul node by name, from its attributes; -1 where absent.
struct MatmulOperands {
  int x1 = 0, w1 = 1, x2 = -1, w2 = -1, row_scale = -1, norm_weight = -1, bias = -1, bias2 = -1, residual = -1, count = 2;
};
MatmulOperands matmul_operands(const Attrs& attrs);

}  // namespace hierarchos::ops
