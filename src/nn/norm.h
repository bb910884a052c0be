// Normalisation layers, chosen by data.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"

namespace hierarchos::nn {

enum class NormKind : uint8_t { Rms, Layer };

struct NormSpec {
  NormKind kind = NormKind::Rms;
  double eps = 1e-5;
  double weight_offset = 0;  // 1 for models that store w - 1 (rms only)
  bool weight = true;
  bool bias = false;  // layer only
};

struct NormWeights {
  std::string name;  // scope: "input_layernorm"
  std::optional<Value> weight, bias;
};

// x [.., N] normalised over its last axis.
Value norm(Value x, const NormSpec& spec, const NormWeights& weights);

}  // namespace hierarchos::nn
