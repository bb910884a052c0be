#include "models/decoder.h"

#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/norm.h"
#include "nn/token_axis.h"
#include "ops/index/gather/gather.h"
#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos::models {
namespace {

// Declares parameters under the names of the family's files.
class Weights {
 public:
  Weights(Graph& graph, const Description& d, const ModelOptions& options, std::vector<LoraParameters>* lora)
      : graph_(graph), d_(d), options_(options), lora_(lora) {}

  Value tensor(const std::string& name, const Shape& shape) {
    const Type type = options_.parameter_type ? options_.parameter_type(name, shape) : Type(DType::F32, shape);
    return graph_.parameter(name, type, options_.trainable);
  }

  nn::NormWeights norm(const std::string& name, const std::string& scope) {
    nn::NormWeights w;
    w.name = scope;
    if (d_.norm.weight) w.weight = tensor(name + ".weight", {d_.hidden_size});
    if (d_.norm.bias) w.bias = tensor(name + ".bias", {d_.hidden_size});
    return w;
  }

  struct LinearSpec {
    std::string name;  // relative to the layer
    int64_t in = 0, out = 0;
    bool bias = false;
  };
  // Layers that share an input: their low-rank A-matrices are one parameter.
  std::vector<nn::LinearWeights> linears(const std::string& layer, const std::vector<LinearSpec>& specs) {
    std::vector<nn::LinearWeights> weights;
    std::vector<std::optional<LoraSpec>> wanted;
    std::string stack;
    int64_t rows = 0;
    for (const LinearSpec& s : specs) {
      nn::LinearWeights w;
      const std::string name = layer + "." + s.name;
      w.name = s.name;
      w.transposed = d_.transposed_linears;
      w.weight = tensor(name + ".weight", w.transposed ? Shape{s.in, s.out} : Shape{s.out, s.in});
      if (s.bias) w.bias = tensor(name + ".bias", {s.out});
      weights.push_back(std::move(w));
      wanted.push_back(options_.lora ? options_.lora(name, s.in, s.out) : std::nullopt);
      if (!wanted.back()) continue;
      stack += (stack.empty() ? "" : "+") + s.name.substr(s.name.rfind('.') + 1);
      rows += wanted.back()->rank;
    }
    if (rows == 0) return weights;
    const std::string& first = specs.front().name;
    const std::string block = first.find('.') == std::string::npos ? "" : first.substr(0, first.rfind('.')) + ".";
    const std::string a_name = layer + "." + block + stack + ".lora_A.weight";
    const Value a = graph_.parameter(a_name, Type(DType::F32, {rows, specs.front().in}));
    int64_t row = 0;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (!wanted[i]) continue;
      const std::string module = layer + "." + specs[i].name;
      const std::string b_name = module + ".lora_B.weight";
      nn::Lora lora;
      lora.a = a;
      lora.begin = row;
      lora.end = row += wanted[i]->rank;
      lora.b = graph_.parameter(b_name, Type(DType::F32, {specs[i].out, wanted[i]->rank}));
      lora.scale = wanted[i]->scale;
      lora_->push_back({module, a_name, b_name, lora.begin, lora.end, specs[i].in, specs[i].out});
      weights[i].lora = lora;
    }
    return weights;
  }

 private:
  Graph& graph_;
  const Description& d_;
  const ModelOptions& options_;
  std::vector<LoraParameters>* lora_;
};

struct LayerWeights {
  nn::NormWeights attention_norm, mlp_norm;
  nn::AttentionWeights attention;
  nn::MlpWeights mlp;
};

LayerWeights layer_weights(Weights& weights, const Description& d, const std::string& layer) {
  const TensorNames& n = d.names;
  const int64_t q = d.heads * d.head_dim, kv = d.kv_heads * d.head_dim;
  LayerWeights w;
  w.attention_norm = weights.norm(layer + "." + n.attention_norm, n.attention_norm);
  if (!n.qkv.empty()) {
    w.attention.qkv = weights.linears(layer, {{n.qkv, d.hidden_size, q + 2 * kv, d.qkv_bias}})[0];
  } else {
    auto three = weights.linears(layer, {{n.q, d.hidden_size, q, d.qkv_bias},
                                         {n.k, d.hidden_size, kv, d.qkv_bias},
                                         {n.v, d.hidden_size, kv, d.qkv_bias}});
    w.attention.q = three[0];
    w.attention.k = three[1];
    w.attention.v = three[2];
  }
  w.attention.o = weights.linears(layer, {{n.o, q, d.hidden_size, d.o_bias}})[0];
  w.mlp_norm = weights.norm(layer + "." + n.mlp_norm, n.mlp_norm);
  if (!n.gate.empty()) {
    auto two = weights.linears(layer, {{n.gate, d.hidden_size, d.intermediate_size, d.mlp_bias},
                                       {n.up, d.hidden_size, d.intermediate_size, d.mlp_bias}});
    w.mlp.gate = two[0];
    w.mlp.up = two[1];
  } else {
    w.mlp.up = weights.linears(layer, {{n.up, d.hidden_size, d.intermediate_size, d.mlp_bias}})[0];
  }
  w.mlp.down = weights.linears(layer, {{n.down, d.intermediate_size, d.hidden_size, d.mlp_bias}})[0];
  return w;
}

Value look_up(Graph& graph, Value table, const std::string& ids, int64_t tokens, bool trainable, int64_t padding_idx) {
  std::optional<Value> order;
  if (trainable) order = nn::sorted_order(graph, ids, tokens);
  return ops::gather(table, graph.input(ids, Type(DType::I32, {tokens})), order, padding_idx);
}

}  // namespace

ModelValues build(const Description& d, Graph& graph, const ModelOptions& options) {
  const int64_t tokens = options.tokens;
  if (tokens < 1) throw UserError("a model needs room for at least one token");
  const Type row(DType::I32, {tokens});
  ModelValues result;
  Weights weights(graph, d, options, &result.lora);
  graph.input("input_ids", row);
  graph.input("positions", row);
  const Value segments = graph.input("segments", row);

  nn::MaskSpec mask;
  mask.window = d.window;
  mask.cached = options.cache != CacheKind::None;
  nn::AttentionInputs shared;
  shared.ranges = nn::attention_ranges(graph, mask, tokens);
  if (d.positions == Positions::Rope) {
    shared.rope = nn::rope_tables(graph, "rope", d.rope, tokens);
    shared.rope_interleaved = d.rope.interleaved;
  }
  Value slots, block_table;
  if (mask.cached) {
    if (options.cache_slots < 1) throw UserError("a cache needs at least one slot");
    slots = graph.input("slots", row);
    if (options.cache == CacheKind::Table)
      block_table =
          graph.input("block_table", Type(DType::I32, {options.table_segments, options.cache_slots / options.page}));
  }

  const std::string& prefix = d.names.prefix;
  const Value table = weights.tensor(prefix + d.names.embedding + ".weight", {d.vocab_size, d.hidden_size});
  Value x;
  {
    Scope scope(graph, prefix + d.names.embedding);
    x = look_up(graph, table, "input_ids", tokens, options.trainable, d.padding_idx);
  }
  if (d.positions == Positions::Learned) {
    Scope scope(graph, prefix + d.names.positions);
    const Value positions = weights.tensor(prefix + d.names.positions + ".weight", {d.max_positions, d.hidden_size});
    x = ops::add(x, look_up(graph, positions, "positions", tokens, options.trainable, -1));
  }

  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string layer = prefix + fmt::format(fmt::runtime(d.names.layer), i);
    const LayerWeights w = layer_weights(weights, d, layer);
    nn::AttentionInputs inputs = shared;
    nn::AttentionShape shape;
    shape.heads = d.heads;
    shape.kv_heads = d.kv_heads;
    shape.head_dim = d.head_dim;
    shape.scale = d.attention_scale[static_cast<size_t>(i)];
    if (mask.cached) {
      const Type rows(options.cache_dtype, {options.cache_slots, d.kv_heads, d.head_dim});
      nn::CacheView cache;
      cache.k = graph.state(fmt::format("cache.layers.{}.k", i), rows, /*checkpointed=*/false);
      cache.v = graph.state(fmt::format("cache.layers.{}.v", i), rows, /*checkpointed=*/false);
      cache.slots = slots;
      if (block_table) {
        cache.segment = segments;
        cache.block_table = block_table;
        cache.page = options.page;
      }
      inputs.cache = cache;
    }
    std::vector<Value> out = graph.call(layer, {x}, [&](std::span<const Value> arguments) {
      const Value hidden = arguments[0];
      const nn::AttentionBlockResult attention =
          nn::attention(nn::norm(hidden, d.norm, w.attention_norm), shape, w.attention, inputs);
      const Value middle = ops::add(hidden, attention.out);
      const Value y = ops::add(middle, nn::mlp(nn::norm(middle, d.norm, w.mlp_norm), d.activation, w.mlp));
      std::vector<Value> results = {y};
      results.insert(results.end(), attention.cache.begin(), attention.cache.end());
      return results;
    });
    x = out[0];
    if (inputs.cache) {
      graph.update(inputs.cache->k, out[1]);
      graph.update(inputs.cache->v, out[2]);
    }
  }

  if (options.logit_rows > 0) {
    Scope scope(graph, "logit_rows");
    x = look_up(graph, x, "logit_rows", options.logit_rows, options.trainable || options.lora != nullptr, -1);
  }
  result.hidden = nn::norm(x, d.norm, weights.norm(prefix + d.names.final_norm, prefix + d.names.final_norm));
  nn::LinearWeights head;
  head.name = d.names.head;
  head.weight = d.tied_head ? table : weights.tensor(d.names.head + ".weight", {d.vocab_size, d.hidden_size});
  result.logits = ops::cast(nn::linear(result.hidden, head), DType::F32);
  return result;
}

std::vector<TensorSpec> expected_tensors(const Description& description) {
  Graph graph;
  ModelOptions options;
  options.tokens = 1;
  build(description, graph, options);
  std::vector<TensorSpec> specs;
  for (const Parameter& p : graph.parameters()) specs.push_back({p.name, p.type.shape});
  return specs;
}

}  // namespace hierarchos::models
