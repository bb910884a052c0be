#include "formats/gguf_llama.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string_view>

#include "formats/shown.h"

namespace hierarchos::formats {
namespace {

// GGUF's names within a block, and Hugging Face's.
constexpr std::pair<const char*, const char*> kBlock[] = {
    {"attn_norm", "input_layernorm"}, {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},   {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"},
};
constexpr const char* kRopeFactors = "rope_freqs.weight";

// Keys below "llama." that are used here or do not change what the model computes.
const std::set<std::string_view> kKeys = {
    "vocab_size",
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.layer_norm_rms_epsilon",
    "attention.key_length",
    "attention.value_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
};

// Llama 3.1's scaling of frequencies comes as one divisor a frequency, not as its settings. They are found again by
// trying what all published models have, with the factor that the slowest frequency has.
nlohmann::json llama3_scaling(const GgufFile& file, double theta, int64_t head_dim) {
  constexpr double kLow = 1, kHigh = 4, kContext = 8192;
  const std::vector<double> divisors = file.tensor(kRopeFactors).to_doubles();
  bool same = static_cast<int64_t>(divisors.size()) == head_dim / 2 && !divisors.empty();
  const double factor = same ? divisors.back() : 0;
  for (size_t i = 0; same && i < divisors.size(); ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    const double wavelength = 2 * std::numbers::pi / frequency;
    double expected = factor;
    if (wavelength < kContext / kHigh) {
      expected = 1;
    } else if (wavelength <= kContext / kLow) {
      const double smooth = (kContext / wavelength - kLow) / (kHigh - kLow);
      expected = 1 / ((1 - smooth) / factor + smooth);
    }
    same = std::abs(divisors[i] - expected) <= 1e-4 * expected;
  }
  if (!same)
    throw UnsupportedError(
        "{}: tensor {} is not the scaling that Llama 3.1 to 3.3 have; use the model's Hugging Face folder",
        file.where(), kRopeFactors);
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", kLow},
          {"high_freq_factor", kHigh},
          {"original_max_position_embeddings", static_cast<int64_t>(kContext)}};
}

nlohmann::json rope_scaling(const GgufFile& file, double theta, int64_t head_dim) {
  const std::string scaling = file.text("llama.rope.scaling.type", "none");
  if (file.entries().count(kRopeFactors)) {
    if (scaling != "none")
      throw UnsupportedError("{}: {} together with llama.rope.scaling.type \"{}\" is not honoured", file.where(),
                             kRopeFactors, shown(scaling));
    return llama3_scaling(file, theta, head_dim);
  }
  if (scaling == "none") return nullptr;
  nlohmann::json out = {{"rope_type", scaling}, {"factor", file.number("llama.rope.scaling.factor")}};
  if (scaling == "yarn")
    out["original_max_position_embeddings"] = file.integer("llama.rope.scaling.original_context_length");
  else if (scaling != "linear")
    throw UnsupportedError("{}: llama.rope.scaling.type \"{}\" is not honoured", file.where(), shown(scaling));
  return out;
}

void add_tensors(const GgufFile& file, int64_t heads, int64_t kv_heads, GgufModel& model) {
  bool head = false;
  for (const auto& [name, entry] : file.entries()) {
    std::string to;
    int64_t rotated = 0;
    if (name == kRopeFactors) continue;
    if (name == "token_embd.weight") {
      to = "model.embed_tokens.weight";
      if (entry.shape.rank() == 2) model.config["vocab_size"] = entry.shape[0];
    } else if (name == "output_norm.weight") {
      to = "model.norm.weight";
    } else if (name == "output.weight") {
      to = "lm_head.weight";
      head = true;
    } else if (name.rfind("blk.", 0) == 0) {
      const size_t dot = name.find('.', 4), last = name.rfind('.');
      const std::string layer = name.substr(4, dot - 4), kind = name.substr(last + 1);
      const std::string part = dot < last ? name.substr(dot + 1, last - dot - 1) : "";
      for (const auto& [from, hf] : kBlock)
        if (part == from && (kind == "weight" || kind == "bias"))
          to = fmt::format("model.layers.{}.{}.{}", layer, hf, kind);
      if (part == "attn_q") rotated = heads;
      if (part == "attn_k") rotated = kv_heads;
      if (kind == "bias" && (part == "attn_q" || part == "attn_k" || part == "attn_v"))
        model.config["attention_bias"] = true;
      if (kind == "bias" && part.rfind("ffn_", 0) == 0) model.config["mlp_bias"] = true;
    }
    if (to.empty())
      throw UnsupportedError("{}: tensor {} belongs to no part of a Llama that is known here", file.where(),
                             shown(name));
    model.tensors.emplace(to, GgufModel::Tensor{name, rotated});
  }
  model.config["tie_word_embeddings"] = !head;
}

}  // namespace

GgufModel gguf_model(const GgufFile& file) {
  const std::string& where = file.where();
  const std::string architecture = file.text("general.architecture");
  if (architecture != "llama")
    throw UnsupportedError(
        "{}: GGUF files of general.architecture \"{}\" are not read, only \"llama\"; use the model's Hugging Face "
        "folder",
        where, shown(architecture));
  for (const auto& [key, value] : file.metadata())
    if (key.rfind("llama.", 0) == 0 && !kKeys.count(std::string_view(key).substr(6)))
      throw UnsupportedError("{}: the metadata key {} could change what the model computes and is not honoured", where,
                             shown(key));

  const int64_t heads = file.integer("llama.attention.head_count"), hidden = file.integer("llama.embedding_length");
  const int64_t kv_heads = file.integer("llama.attention.head_count_kv", heads);
  if (heads < 1 || kv_heads < 1 || hidden < 1) throw DataError("{}: head counts or widths below 1", where);
  const int64_t head_dim = file.integer("llama.attention.key_length", hidden / heads);
  if (file.integer("llama.rope.dimension_count", head_dim) != head_dim)
    throw UnsupportedError("{}: llama.rope.dimension_count rotates part of a head, which is not honoured", where);
  if (file.integer("llama.attention.value_length", head_dim) != head_dim)
    throw UnsupportedError("{}: llama.attention.value_length differs from the keys', which is not honoured", where);
  const double theta = file.has("llama.rope.freq_base") ? file.number("llama.rope.freq_base") : 10000.0;

  GgufModel model;
  model.config = {{"model_type", "llama"},
                  {"architectures", {"LlamaForCausalLM"}},
                  {"hidden_act", "silu"},
                  {"hidden_size", hidden},
                  {"num_hidden_layers", file.integer("llama.block_count")},
                  {"intermediate_size", file.integer("llama.feed_forward_length")},
                  {"num_attention_heads", heads},
                  {"num_key_value_heads", kv_heads},
                  {"head_dim", head_dim},
                  {"max_position_embeddings", file.integer("llama.context_length")},
                  {"rms_norm_eps", file.number("llama.attention.layer_norm_rms_epsilon")},
                  {"rope_theta", theta},
                  // A padding id would change which row of the embedding is trained.
                  {"pad_token_id", nullptr}};
  if (nlohmann::json scaling = rope_scaling(file, theta, head_dim); !scaling.is_null())
    model.config["rope_scaling"] = std::move(scaling);
  for (const std::string key : {"bos_token_id", "eos_token_id"}) {
    model.config[key] = nullptr;
    if (file.has("tokenizer.ggml." + key)) model.config[key] = file.integer("tokenizer.ggml." + key);
  }
  // The end of a turn ends an answer as the end of the text does.
  if (file.has("tokenizer.ggml.eot_token_id")) {
    const int64_t turn = file.integer("tokenizer.ggml.eot_token_id");
    if (model.config["eos_token_id"] != turn && !model.config["eos_token_id"].is_null())
      model.generation_config = {{"bos_token_id", model.config["bos_token_id"]},
                                 {"eos_token_id", {model.config["eos_token_id"], turn}}};
  }
  add_tensors(file, heads, kv_heads, model);
  return model;
}

HostTensor undo_rotation_order(const HostTensor& tensor, int64_t heads) {
  const int64_t rows = tensor.shape().rank() == 0 ? 0 : tensor.shape()[0];
  if (heads < 1 || rows == 0 || rows % heads != 0 || rows / heads % 2 != 0)
    throw DataError("a tensor of shape {} does not divide into {} heads of even width", tensor.shape().to_string(),
                    heads);
  HostTensor out(tensor.dtype(), tensor.shape(), tensor.storage());
  const auto from = tensor.bytes();
  const auto to = out.mutable_bytes();
  const int64_t bytes = static_cast<int64_t>(from.size()) / rows, width = rows / heads, half = width / 2;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = r / width, within = r % width;  // row i of half j, which the file has as row 2 i + j
    const int64_t row = head * width + within % half * 2 + within / half;
    std::copy_n(from.begin() + row * bytes, bytes, to.begin() + r * bytes);
  }
  return out;
}

}  // namespace hierarchos::formats
