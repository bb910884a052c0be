#include "models/decoder.h"

#include <numeric>

#include "models/weights.h"
#include "nn/token_axis.h"
#include "ops/index/gather/gather.h"
#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"
#include "tensor/host_tensor.h"

namespace hierarchos::models {
namespace {

Value scaled(Value x, double factor) { return factor == 1 ? x : ops::mul(x, factor); }

Value look_up(Graph& graph, Value table, const std::string& ids, int64_t tokens, bool trainable, int64_t padding_idx) {
  std::optional<Value> order;
  if (trainable) order = nn::sorted_order(graph, ids, tokens);
  const Value rows = ops::gather(table, graph.input(ids, Type(DType::I32, {tokens})), order, padding_idx);
  return rows.dtype() == DType::F32 ? rows : ops::cast(rows, DType::F32);  // hidden states stay fp32
}

// Tables of the rotations that layers use, each made once.
class Rotations {
 public:
  Rotations(Graph& graph, int64_t tokens) : graph_(graph), tokens_(tokens) {}
  nn::RopeTables tables(const nn::RopeParams& params) {
    for (const auto& [known, tables] : made_)
      if (known == params) return tables;
    const std::string name = made_.empty() ? "rope" : fmt::format("rope.{}", made_.size());
    made_.emplace_back(params, nn::rope_tables(graph_, name, params, tokens_));
    return made_.back().second;
  }

 private:
  Graph& graph_;
  int64_t tokens_;
  std::vector<std::pair<nn::RopeParams, nn::RopeTables>> made_;
};

// What the attention of all layers shares.
class SharedInputs {
 public:
  SharedInputs(const Description& d, Graph& graph, const ModelOptions& options)
      : d_(d), graph_(graph), options_(options), rotations_(graph, options.tokens) {
    const Type row(DType::I32, {options.tokens});
    positions_ = graph.input("positions", row);
    segments_ = graph.input("segments", row);
    if (d.positions == Positions::Alibi) add_alibi();
    if (!cached()) return;
    if (options.cache_slots < 1) throw UserError("a cache needs at least one slot");
    slots_ = graph.input("slots", row);
    if (options.cache == CacheKind::Table)
      block_table_ =
          graph.input("block_table", Type(DType::I32, {options.table_segments, options.cache_slots / options.page}));
  }

  Value segments() const { return segments_; }

  nn::AttentionInputs of_layer(int64_t i) {
    nn::AttentionInputs inputs;
    nn::MaskSpec mask;
    mask.window = d_.window(i);
    mask.cached = cached();
    inputs.ranges = nn::attention_ranges(graph_, mask, options_.tokens);
    if (const auto rope = d_.rope_of(i)) {
      inputs.rope = rotations_.tables(*rope);
      inputs.rope_interleaved = rope->interleaved;
    }
    inputs.alibi = alibi_;
    if (!cached()) return inputs;
    const Type rows(options_.cache_dtype, {options_.cache_slots, d_.kv_heads, d_.head_dim});
    nn::CacheView cache;
    cache.k = graph_.state(fmt::format("cache.layers.{}.k", i), rows, /*checkpointed=*/false);
    cache.v = graph_.state(fmt::format("cache.layers.{}.v", i), rows, /*checkpointed=*/false);
    cache.slots = slots_;
    if (block_table_) {
      cache.segment = segments_;
      cache.block_table = block_table_;
      cache.page = options_.page;
    }
    inputs.cache = cache;
    return inputs;
  }

 private:
  bool cached() const { return options_.cache != CacheKind::None; }
  // Keys of a cache are counted by position, those of the call by row.
  void add_alibi() {
    const std::vector<float> slopes(d_.alibi_slopes.begin(), d_.alibi_slopes.end());
    nn::AlibiInputs alibi;
    alibi.slopes = graph_.constant(HostTensor::from(DType::F32, {d_.heads}, slopes));
    alibi.indices = positions_;
    if (!cached()) {
      std::vector<int32_t> rows(static_cast<size_t>(options_.tokens));
      std::iota(rows.begin(), rows.end(), 0);
      alibi.indices = graph_.constant(HostTensor::from(DType::I32, {options_.tokens}, rows));
    }
    alibi_ = alibi;
  }

  const Description& d_;
  Graph& graph_;
  const ModelOptions& options_;
  Rotations rotations_;
  Value positions_, segments_, slots_, block_table_;
  std::optional<nn::AlibiInputs> alibi_;
};

struct LayerResult {
  Value out;
  std::vector<Value> cache;
  std::optional<nn::MoeLoad> load;
};

// One layer: hidden [T, hidden] → [T, hidden].
LayerResult layer_body(Value hidden, const Description& d, int64_t i, const LayerWeights& w,
                       const nn::AttentionInputs& inputs, const nn::MoeInputs& moe_inputs) {
  const auto normed = [&](Value x, const std::optional<nn::NormWeights>& weights) {
    return weights ? nn::norm(x, d.norm, *weights) : x;
  };
  nn::AttentionShape shape;
  shape.heads = d.heads;
  shape.kv_heads = d.kv_heads;
  shape.head_dim = d.head_dim;
  shape.scale = d.attention_scale[static_cast<size_t>(i)];
  shape.softcap = d.attention_softcap;
  shape.layout = d.qkv_layout;
  shape.norm_whole = d.qk_norm == QkNorm::Whole;

  LayerResult result;
  const Value attention_in = normed(hidden, w.attention_norm);
  nn::AttentionBlockResult attention = nn::attention(attention_in, shape, w.attention, inputs, d.qk_norm_spec);
  result.cache = std::move(attention.cache);
  const Value middle = ops::add(hidden, scaled(normed(attention.out, w.post_attention_norm), d.residual_scale));
  Value mlp_in = normed(d.parallel_residual ? hidden : middle, w.mlp_norm);
  if (d.parallel_residual && !w.mlp_norm) mlp_in = attention_in;
  Value y;
  if (w.moe) {
    nn::MoeResult moe = nn::moe(mlp_in, d.activation, *d.moe, *w.moe, moe_inputs);
    y = moe.out;
    result.load = moe.load;
  } else {
    y = nn::mlp(mlp_in, d.activation, w.mlp);
  }
  result.out = ops::add(middle, scaled(normed(y, w.post_mlp_norm), d.residual_scale));
  return result;
}

Value embed(const Description& d, Graph& graph, Weights& weights, const ModelOptions& options, Value table) {
  const std::string& prefix = d.names.prefix;
  Value x;
  {
    Scope scope(graph, prefix + d.names.embedding);
    x = scaled(look_up(graph, table, "input_ids", options.tokens, options.trainable, d.padding_idx), d.embedding_scale);
  }
  if (d.positions == Positions::Learned) {
    Scope scope(graph, prefix + d.names.positions);
    const Value positions = weights.tensor(prefix + d.names.positions + ".weight", {d.max_positions, d.hidden_size});
    x = ops::add(x, look_up(graph, positions, "positions", options.tokens, options.trainable, -1));
  }
  return x;
}

}  // namespace

ModelValues build(const Description& d, Graph& graph, const ModelOptions& options) {
  const int64_t tokens = options.tokens;
  if (tokens < 1) throw UserError("a model needs room for at least one token");
  ModelValues result;
  Weights weights(graph, d, options, result);
  graph.input("input_ids", Type(DType::I32, {tokens}));
  SharedInputs shared(d, graph, options);
  nn::MoeInputs moe_inputs;
  moe_inputs.segments = shared.segments();
  if (d.moe) moe_inputs.expert_ids = nn::expert_ids(graph, d.moe->experts);
  moe_inputs.trained = options.trainable || options.lora != nullptr;
  moe_inputs.with_load = options.with_loss && d.moe && d.aux_loss != 0;

  const std::string& prefix = d.names.prefix;
  const Value table = weights.tensor(prefix + d.names.embedding + ".weight", {d.vocab_size, d.hidden_size});
  Value x = embed(d, graph, weights, options, table);
  std::optional<nn::MoeLoad> load;
  for (int64_t i = 0; i < d.layers; ++i) {
    const std::string name = prefix + fmt::format(fmt::runtime(d.names.layer), i);
    const LayerWeights w = weights.layer(name);
    const nn::AttentionInputs inputs = shared.of_layer(i);
    const std::vector<Value> out = graph.call(name, {x}, [&](std::span<const Value> arguments) {
      const LayerResult layer = layer_body(arguments[0], d, i, w, inputs, moe_inputs);
      std::vector<Value> results = {layer.out};
      results.insert(results.end(), layer.cache.begin(), layer.cache.end());
      if (layer.load) results.insert(results.end(), {layer.load->chosen, layer.load->probabilities});
      return results;
    });
    x = out[0];
    if (inputs.cache) {
      graph.update(inputs.cache->k, out[1]);
      graph.update(inputs.cache->v, out[2]);
    }
    if (moe_inputs.with_load) {
      const Value chosen = out[out.size() - 2], probabilities = out.back();
      load = load ? nn::MoeLoad{ops::add(load->chosen, chosen), ops::add(load->probabilities, probabilities)}
                  : nn::MoeLoad{chosen, probabilities};
    }
  }
  if (load) result.aux_loss = ops::mul(nn::load_balancing_loss(*load, d.layers, shared.segments()), d.aux_loss);

  if (options.logit_rows > 0) {
    Scope scope(graph, "logit_rows");
    x = look_up(graph, x, "logit_rows", options.logit_rows, options.trainable || options.lora != nullptr, -1);
  }
  result.hidden = nn::norm(x, d.norm, weights.norm(prefix + d.names.final_norm, prefix + d.names.final_norm));
  nn::LinearWeights head;
  head.name = d.names.head;
  head.weight = d.tied_head ? table : weights.tensor(d.names.head + ".weight", {d.vocab_size, d.hidden_size});
  result.logits = scaled(ops::cast(nn::linear(result.hidden, head), DType::F32), d.logit_scale);
  if (d.logit_softcap != 0)
    result.logits = ops::mul(ops::tanh(ops::mul(result.logits, 1 / d.logit_softcap)), d.logit_softcap);
  return result;
}

std::vector<TensorSpec> expected_tensors(const Description& description) {
  Graph graph;
  ModelOptions options;
  options.tokens = 1;
  const ModelValues values = build(description, graph, options);
  std::vector<TensorSpec> specs;
  for (const Parameter& p : graph.parameters()) {
    const auto parts = values.parts.find(p.name);
    specs.push_back({p.name, p.type.shape, parts == values.parts.end() ? std::vector<std::string>{} : parts->second});
  }
  return specs;
}

}  // namespace hierarchos::models
