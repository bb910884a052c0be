// What a decoder is, as data: a family's file turns config.json into this, decoder.cpp writes the graph from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/attention.h"
#include "nn/moe.h"
#include "nn/norm.h"
#include "nn/rope.h"

namespace hierarchos::models {

enum class Positions : uint8_t {
  None,
  Rope,
  Learned,  // a table added to the embedding
  Alibi,    // a bias on the scores that grows with the distance
};

// What q and k are normalised over, before the rotation.
enum class QkNorm : uint8_t {
  None,
  Head,     // each head, by the same weight [head_dim]
  PerHead,  // each head, by a weight of its own
  Whole,    // all heads together, by a weight [heads · head_dim]
};

// Tensor names of a family, without the prefix; "{}" stands for the layer's index. Weights and biases add ".weight" and
// ".bias". An empty name: the family has no such tensor.
struct TensorNames {
  std::string prefix;  // of everything but the head: "model."; a file without it on all its tensors is accepted too
  std::string embedding, positions, final_norm, head = "lm_head";
  std::string layer;  // "layers.{}"; the names below are relative to it
  // Before and after each block. mlp_norm empty with `parallel_residual`: the MLP reads what the attention reads.
  std::string attention_norm, post_attention_norm, mlp_norm, post_mlp_norm;
  std::string qkv, q, k, v, o;  // either qkv, or q, k and v
  std::string q_norm, k_norm;   // a second "{}" stands for the head (QkNorm::PerHead)
  std::string gate_up, gate, up,
      down;            // gate_up: both in one, gate first; gate and gate_up empty: the MLP is not gated
  std::string router;  // of a mixture, whose experts have gate, up and down, "{}" being the expert
  // Other spellings in files of the same family: (theirs, ours), parts of names.
  std::vector<std::pair<std::string, std::string>> aliases;
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
  // One a layer where they differ (none: the layer does not rotate); else empty.
  std::vector<std::optional<nn::RopeParams>> layer_ropes;
  // > 0: the reference computes a sequence's cache again when it grows past this many tokens, since its scaling of RoPE
  // changes there (Phi-3's longrope).
  int64_t recompute_past = 0;
  std::vector<double> alibi_slopes;     // one a head
  std::vector<double> attention_scale;  // one a layer
  double attention_softcap = 0;         // scores become c·tanh(scores / c); 0: none
  // One a layer: sliding window of keys, the query's own included; 0: none. Empty: no layer has one.
  std::vector<int64_t> windows;
  nn::QkvLayout qkv_layout = nn::QkvLayout::Blocks;  // of the fused projection
  QkNorm qk_norm = QkNorm::None;
  nn::NormSpec qk_norm_spec;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool transposed_linears = false;  // weights of the layers are stored [in, out]
  bool parallel_residual = false;   // x + attention(x) + mlp(x) rather than one after the other
  std::string activation = "silu";
  std::optional<nn::MoeSpec> moe;  // the MLPs are mixtures of experts
  double aux_loss = 0;             // times the load-balancing loss is part of the training loss

  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  double logit_softcap = 0;
  bool tied_head = false;    // logits from the embedding table
  int64_t padding_idx = -1;  // this id's embedding gets no gradient from look-ups

  std::vector<std::string> lora_targets;  // PEFT's default for the family

  TensorNames names;
  // Tensors that files of this family may hold and that the model does not use; "*" at either end matches anything.
  std::vector<std::string> unused_tensors;

  int64_t window(int64_t layer) const { return windows.empty() ? 0 : windows[static_cast<size_t>(layer)]; }
  std::optional<nn::RopeParams> rope_of(int64_t layer) const {
    if (positions != Positions::Rope) return std::nullopt;
    return layer_ropes.empty() ? std::optional(rope) : layer_ropes[static_cast<size_t>(layer)];
  }
  // Whether a rotation depends on the length of the sequence, so that a text must be read in one call.
  bool length_changes_rope() const {
    for (int64_t i = 0; i < layers; ++i)
      if (const auto r = rope_of(i); r && r->depends_on_length()) return true;
    return false;
  }
};

}  // namespace hierarchos::models
