// What a decoder is, as data: a family's file turns config.json into this, decoder.cpp writes the graph from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/norm.h"
#include "nn/rope.h"

namespace hierarchos::models {

enum class Positions : uint8_t {
  None,
  Rope,
  Learned,  // a table added to the embedding
};

// Tensor names of a family, without the prefix; "{}" stands for the layer's index. Weights and biases add ".weight" and
// ".bias". An empty name: the family has no such tensor.
struct TensorNames {
  std::string prefix;  // of everything but the head: "model."; a file without it on all its tensors is accepted too
  std::string embedding, positions, final_norm, head = "lm_head";
  std::string layer;  // "layers.{}"; the names below are relative to it
  std::string attention_norm, mlp_norm;
  std::string qkv, q, k, v, o;  // either qkv, or q, k and v
  std::string gate, up, down;   // gate: empty where the MLP is not gated
};

inline constexpr int64_t kMostLayers = 10000;

struct Description {
  std::string model_type;
  int64_t vocab_size = 0, hidden_size = 0, layers = 0, intermediate_size = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;  // what the model was made for; a hard limit where positions are learned

  nn::NormSpec norm;
  Positions positions = Positions::Rope;
  nn::RopeParams rope;
  std::vector<double> attention_scale;  // one a layer
  int64_t window = 0;                   // sliding window of keys, the query's own included; 0: none
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool transposed_linears = false;  // weights of the layers are stored [in, out]
  std::string activation = "silu";
  bool tied_head = false;    // logits from the embedding table
  int64_t padding_idx = -1;  // this id's embedding gets no gradient from look-ups

  std::vector<std::string> lora_targets;  // PEFT's default for the family

  TensorNames names;
  // Tensors that files of this family may hold and that the model does not use; "*" at either end matches anything.
  std::vector<std::string> unused_tensors;
};

}  // namespace hierarchos::models
