// Declares a decoder's parameters under the names of its family's files.
#pragma once

#include <string>
#include <vector>

#include "models/decoder.h"
#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/moe.h"
#include "nn/norm.h"

namespace hierarchos::models {

struct LayerWeights {
  // Those that the family's names have.
  std::optional<nn::NormWeights> attention_norm, post_attention_norm, mlp_norm, post_mlp_norm;
  nn::AttentionWeights attention;
  nn::MlpWeights mlp;
  std::optional<nn::MoeWeights> moe;  // instead of the MLP
};

class Weights {
 public:
  Weights(Graph& graph, const Description& d, const ModelOptions& options, ModelValues& result)
      : graph_(graph), d_(d), options_(options), result_(result) {}

  Value tensor(const std::string& name, const Shape& shape);
  // name: in full; scope: as errors show it.
  nn::NormWeights norm(const std::string& name, const std::string& scope);
  // layer: its full name, "model.layers.3".
  LayerWeights layer(const std::string& layer);

 private:
  struct LinearSpec {
    std::string name;  // relative to the layer
    int64_t in = 0, out = 0;
    bool bias = false;
  };
  std::vector<nn::LinearWeights> linears(const std::string& layer, const std::vector<LinearSpec>& specs);
  nn::LinearWeights linear(const std::string& layer, const LinearSpec& spec) { return linears(layer, {spec})[0]; }
  nn::LinearWeights plain_linear(const std::string& layer, const LinearSpec& spec);
  Value parts(const std::string& layer, const std::string& name, int64_t count, const Shape& each);
  std::optional<nn::NormWeights> layer_norm(const std::string& layer, const std::string& name);
  nn::NormWeights qk_norm(const std::string& layer, const std::string& name, int64_t heads);
  nn::AttentionWeights attention(const std::string& layer);
  nn::MlpWeights mlp(const std::string& layer, int64_t width);
  nn::MoeWeights moe(const std::string& layer);

  Graph& graph_;
  const Description& d_;
  const ModelOptions& options_;
  ModelValues& result_;
};

}  // namespace hierarchos::models
