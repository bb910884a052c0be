#include "models/weights.h"

#include "ops/views/views.h"

namespace hierarchos::models {
namespace {

std::string numbered(const std::string& name, int64_t i) { return fmt::format(fmt::runtime(name), i); }

// "experts.{}.w1" → "experts.w1": what the parameter made of the parts is called.
std::string without_number(std::string name) {
  const size_t at = name.find("{}");
  return name.erase(at > 0 ? at - 1 : at, at > 0 ? 3 : 2);
}

}  // namespace

Value Weights::tensor(const std::string& name, const Shape& shape) {
  const Type type = options_.parameter_type ? options_.parameter_type(name, shape) : Type(DType::F32, shape);
  return graph_.parameter(name, type, options_.trainable);
}

// [count · each[0], …]
Value Weights::parts(const std::string& layer, const std::string& name, int64_t count, const Shape& each) {
  const std::string whole = layer + "." + without_number(name) + ".weight";
  Shape shape = each;
  shape[0] *= count;
  std::vector<std::string>& names = result_.parts[whole];
  names.clear();
  for (int64_t i = 0; i < count; ++i) names.push_back(layer + "." + numbered(name, i) + ".weight");
  return tensor(whole, shape);
}

nn::NormWeights Weights::norm(const std::string& name, const std::string& scope) {
  nn::NormWeights w;
  w.name = scope;
  if (d_.norm.weight) w.weight = tensor(name + ".weight", {d_.hidden_size});
  if (d_.norm.bias) w.bias = tensor(name + ".bias", {d_.hidden_size});
  return w;
}

std::optional<nn::NormWeights> Weights::layer_norm(const std::string& layer, const std::string& name) {
  if (name.empty()) return std::nullopt;
  return norm(layer + "." + name, name);
}

nn::NormWeights Weights::qk_norm(const std::string& layer, const std::string& name, int64_t heads) {
  const bool per_head = d_.qk_norm == QkNorm::PerHead;
  const int64_t width = d_.qk_norm == QkNorm::Head ? d_.head_dim : heads * d_.head_dim;
  nn::NormWeights w;
  w.name = name;
  if (name.find("{}") != std::string::npos) {
    w.name = without_number(name);
    w.weight = parts(layer, name, heads, {d_.head_dim});
    if (per_head) w.weight = ops::reshape(*w.weight, {heads, d_.head_dim});
    return w;
  }
  const Shape shape = per_head ? Shape{heads, d_.head_dim} : Shape{width};
  if (d_.qk_norm_spec.weight) w.weight = tensor(layer + "." + name + ".weight", shape);
  if (d_.qk_norm_spec.bias) w.bias = tensor(layer + "." + name + ".bias", shape);
  return w;
}

nn::LinearWeights Weights::plain_linear(const std::string& layer, const LinearSpec& s) {
  nn::LinearWeights w;
  const std::string name = layer + "." + s.name;
  w.name = s.name;
  w.transposed = d_.transposed_linears;
  w.weight = tensor(name + ".weight", w.transposed ? Shape{s.in, s.out} : Shape{s.out, s.in});
  if (s.bias) w.bias = tensor(name + ".bias", {s.out});
  return w;
}

// Layers that share an input: their low-rank A-matrices are one parameter.
std::vector<nn::LinearWeights> Weights::linears(const std::string& layer, const std::vector<LinearSpec>& specs) {
  std::vector<nn::LinearWeights> weights;
  std::vector<std::optional<LoraSpec>> wanted;
  std::string stack;
  int64_t rows = 0;
  for (const LinearSpec& s : specs) {
    weights.push_back(plain_linear(layer, s));
    wanted.push_back(options_.lora ? options_.lora(layer + "." + s.name, s.in, s.out) : std::nullopt);
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
    result_.lora.push_back({module, a_name, b_name, lora.begin, lora.end, specs[i].in, specs[i].out});
    weights[i].lora = lora;
  }
  return weights;
}

nn::AttentionWeights Weights::attention(const std::string& layer) {
  const TensorNames& n = d_.names;
  const int64_t q = d_.heads * d_.head_dim, kv = d_.kv_heads * d_.head_dim;
  nn::AttentionWeights w;
  if (!n.qkv.empty()) {
    w.qkv = linear(layer, {n.qkv, d_.hidden_size, q + 2 * kv, d_.qkv_bias});
  } else {
    auto three = linears(layer, {{n.q, d_.hidden_size, q, d_.qkv_bias},
                                 {n.k, d_.hidden_size, kv, d_.qkv_bias},
                                 {n.v, d_.hidden_size, kv, d_.qkv_bias}});
    w.q = three[0];
    w.k = three[1];
    w.v = three[2];
  }
  if (d_.qk_norm != QkNorm::None) {
    w.q_norm = qk_norm(layer, n.q_norm, d_.heads);
    w.k_norm = qk_norm(layer, n.k_norm, d_.kv_heads);
  }
  w.o = linear(layer, {n.o, q, d_.hidden_size, d_.o_bias});
  return w;
}

nn::MlpWeights Weights::mlp(const std::string& layer, int64_t width) {
  const TensorNames& n = d_.names;
  nn::MlpWeights w;
  if (!n.gate_up.empty()) {
    w.gate_up = linear(layer, {n.gate_up, d_.hidden_size, 2 * width, d_.mlp_bias});
  } else if (!n.gate.empty()) {
    auto two =
        linears(layer, {{n.gate, d_.hidden_size, width, d_.mlp_bias}, {n.up, d_.hidden_size, width, d_.mlp_bias}});
    w.gate = two[0];
    w.up = two[1];
  } else {
    w.up = linear(layer, {n.up, d_.hidden_size, width, d_.mlp_bias});
  }
  w.down = linear(layer, {n.down, width, d_.hidden_size, d_.mlp_bias});
  return w;
}

nn::MoeWeights Weights::moe(const std::string& layer) {
  const TensorNames& n = d_.names;
  const nn::MoeSpec& spec = *d_.moe;
  nn::MoeWeights w;
  w.router = plain_linear(layer, {n.router, d_.hidden_size, spec.experts});
  w.gate = parts(layer, n.gate, spec.experts, {spec.width, d_.hidden_size});
  w.up = parts(layer, n.up, spec.experts, {spec.width, d_.hidden_size});
  w.down = parts(layer, n.down, spec.experts, {d_.hidden_size, spec.width});
  return w;
}

LayerWeights Weights::layer(const std::string& layer) {
  const TensorNames& n = d_.names;
  LayerWeights w;
  w.attention_norm = layer_norm(layer, n.attention_norm);
  w.attention = attention(layer);
  w.post_attention_norm = layer_norm(layer, n.post_attention_norm);
  w.mlp_norm = layer_norm(layer, n.mlp_norm);
  if (d_.moe)
    w.moe = moe(layer);
  else
    w.mlp = mlp(layer, d_.intermediate_size);
  w.post_mlp_norm = layer_norm(layer, n.post_mlp_norm);
  return w;
}

}  // namespace hierarchos::models
