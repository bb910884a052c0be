// Writes a decoder's graph from its description.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "models/description.h"

namespace hierarchos::models {

enum class CacheKind : uint8_t {
  None,        // keys are the rows of the call
  Contiguous,  // one sequence: a token's slot is its position
  Table,       // several: a block table maps each segment's positions to slots
};

struct LoraSpec {
  int64_t rank = 0;
  double scale = 1;
};

struct ModelOptions {
  int64_t tokens = 0;      // capacity of the token axis
  int64_t logit_rows = 0;  // rows that want logits, named by the input logit_rows; 0: all rows, in order
  CacheKind cache = CacheKind::None;
  int64_t cache_slots = 0;  // rows of each layer's cache
  DType cache_dtype = DType::F32;
  int64_t table_segments = 0, page = 1;  // of the block table [segments, cache_slots / page]
  bool trainable = false;                // base parameters are trained: look-ups need the orders for their gradients
  bool with_loss = false;                // the layers' own terms of the training loss are wanted
  // Type of a parameter in memory; fp32 where not given. The shape is the one that the description asks for.
  std::function<Type(const std::string& name, const Shape& shape)> parameter_type;
  // Low-rank updates: asked for each linear layer of the blocks by its full name and sizes.
  std::function<std::optional<LoraSpec>(const std::string& module, int64_t in, int64_t out)> lora;
};

// One linear layer's update, as parameters of the graph. A-matrices of layers that share an input are rows of one
// parameter.
struct LoraParameters {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  std::string a, b;    // parameter names
  int64_t a_begin = 0, a_end = 0;
  int64_t in = 0, out = 0;
};

struct ModelValues {
  Value hidden;  // [tokens or logit_rows, hidden], after the last norm
  Value logits;  // [tokens or logit_rows, vocab] fp32
  // What is added to the mean loss of a batch (the load balancing of mixtures): rank 0, where the model has such a term
  // and `with_loss` asks for it.
  std::optional<Value> aux_loss;
  std::vector<LoraParameters> lora;
  // Parameters that files hold in parts: the names of these, which follow each other along the first axis.
  std::map<std::string, std::vector<std::string>> parts;
};

// Inputs that it declares: input_ids, positions, segments [T] I32 (segment -1: padding), and as options ask slots [T],
// block_table [segments, slots / page], logit_rows [R]. Cache states: "cache.layers.N.k" and ".v".
ModelValues build(const Description& description, Graph& graph, const ModelOptions& options);

// A parameter that the description asks for.
struct TensorSpec {
  std::string name;
  Shape shape;
  std::vector<std::string> parts;  // as in ModelValues; empty: a file holds it as it is
};
std::vector<TensorSpec> expected_tensors(const Description& description);

}  // namespace hierarchos::models
