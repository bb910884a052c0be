#include "nn/norm.h"

#include "ops/reduce/layer_norm/layer_norm.h"
#include "ops/reduce/rms_norm/rms_norm.h"

namespace hierarchos::nn {

Value norm(Value x, const NormSpec& spec, const NormWeights& weights) {
  Scope scope(x.graph(), weights.name);
  if (spec.kind == NormKind::Layer) {
    if (spec.weight_offset != 0) throw UnsupportedError("{}: a layer norm with a weight offset", weights.name);
    return ops::layer_norm(x, weights.weight, weights.bias, spec.eps);
  }
  if (weights.bias) throw UnsupportedError("{}: an RMS norm with a bias", weights.name);
  return ops::rms_norm(x, weights.weight, spec.eps, spec.weight_offset);
}

}  // namespace hierarchos::nn
