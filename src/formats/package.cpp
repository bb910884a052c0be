#include "formats/package.h"

#include <set>

#include "base/json.h"

namespace hierarchos::formats {

std::shared_ptr<const Package> Package::open(const std::filesystem::path& path) {
  auto package = std::make_shared<Package>();
  package->where_ = path.string();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    package->folder_ = path;
    package->open_folder();
  } else if (std::filesystem::exists(path, error)) {
    package->gguf_ = GgufFile::open(path);
    package->folder_ = path.parent_path();
    package->open_gguf();
  } else {
    throw UserError("{}: there is no such file or folder", path.string());
  }
  return package;
}

void Package::open_folder() {
  if (!file_exists(file("config.json")))
    throw UserError("{}: no config.json here; --model takes a Hugging Face model folder or a .gguf file", where_);
  config_ = read_json_file(file("config.json"));
  if (!config_.is_object()) throw DataError("{}: this is no object", file("config.json").string());
  if (file_exists(file("generation_config.json"))) generation_config_ = read_json_file(file("generation_config.json"));

  const auto add = [&](const std::shared_ptr<const SafetensorsFile>& shard, const std::set<std::string>* expected) {
    for (const auto& [name, entry] : shard->entries()) {
      if (expected && !expected->count(name))
        throw DataError("{}: tensor {} is not in model.safetensors.index.json", shard->path().string(), name);
      if (!tensors_.emplace(name, Source{shard, name, 0}).second)
        throw DataError("{}: tensor {} is in two shards", shard->path().string(), name);
    }
  };
  if (file_exists(file("model.safetensors"))) {
    add(SafetensorsFile::open(file("model.safetensors")), nullptr);
    return;
  }
  const std::filesystem::path index_path = file("model.safetensors.index.json");
  if (!file_exists(index_path))
    throw UserError("{}: neither model.safetensors nor model.safetensors.index.json is here", where_);
  const nlohmann::json index = read_json_file(index_path);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw DataError("{}: there is no weight_map", index_path.string());
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string()) throw DataError("{}: the shard of {} is no string", index_path.string(), name);
    const auto text = shard.get<std::string>();
    if (text.empty() || text.find('/') != std::string::npos || text.find('\\') != std::string::npos || text == "..")
      throw DataError("{}: tensor {} is said to be in \"{}\", which is no file of the folder", index_path.string(), name, text);
    shards[text].insert(name);
  }
  for (const auto& [shard, names] : shards) {
    if (!file_exists(file(shard))) throw UserError("{}: the shard {} is missing", where_, shard);
    add(SafetensorsFile::open(file(shard)), &names);
    for (const std::string& name : names)
      if (!has(name)) throw DataError("{}: tensor {} is missing; the index says it is here", file(shard).string(), name);
  }
}

namespace {

// GGUF's names within a block, and Hugging Face's.
constexpr std::pair<const char*, const char*> kLlamaBlock[] = {
    {"attn_norm", "input_layernorm"}, {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"}, {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"}, {"ffn_down", "mlp.down_proj"}};

// Keys of a llama file that we use below or that do not change what it computes.
const std::set<std::string> kLlamaKeys = {
    "vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
    "attention.head_count_kv", "attention.layer_norm_rms_epsilon", "attention.key_length", "attention.value_length", "rope.dimension_count",
    "rope.freq_base", "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.finetuned"};

}  // namespace

void Package::open_gguf() {
  const GgufFile& f = *gguf_;
  const std::string architecture = f.text("general.architecture");
  if (architecture != "llama")
    throw UnsupportedError("{}: GGUF files of general.architecture \"{}\" are not read yet; use the model's Hugging Face folder", where_, architecture);
  for (const auto& [key, value] : f.metadata())
    if (key.rfind("llama.", 0) == 0 && !kLlamaKeys.count(key.substr(6)))
      throw UnsupportedError("{}: the metadata key {} could change what the model computes and is not honoured", where_, key);

  const int64_t heads = f.integer("llama.attention.head_count"), hidden = f.integer("llama.embedding_length");
  const int64_t kv_heads = f.integer("llama.attention.head_count_kv", heads);
  if (heads < 1 || kv_heads < 1 || hidden < 1) throw DataError("{}: head counts or widths below 1", where_);
  const int64_t head_dim = f.integer("llama.attention.key_length", hidden / heads);
  if (f.integer("llama.rope.dimension_count", head_dim) != head_dim)
    throw UnsupportedError("{}: llama.rope.dimension_count rotates part of a head", where_);
  if (f.integer("llama.attention.value_length", head_dim) != head_dim)
    throw UnsupportedError("{}: llama.attention.value_length differs from the keys'", where_);
  config_ = {{"model_type", "llama"},
             {"architectures", {"LlamaForCausalLM"}},
             {"hidden_act", "silu"},
             {"hidden_size", hidden},
             {"num_hidden_layers", f.integer("llama.block_count")},
             {"intermediate_size", f.integer("llama.feed_forward_length")},
             {"num_attention_heads", heads},
             {"num_key_value_heads", kv_heads},
             {"head_dim", head_dim},
             {"max_position_embeddings", f.integer("llama.context_length")},
             {"rms_norm_eps", f.number("llama.attention.layer_norm_rms_epsilon")},
             {"rope_theta", f.find("llama.rope.freq_base") ? f.number("llama.rope.freq_base") : 10000.0}};
  const std::string scaling = f.text("llama.rope.scaling.type", "none");
  if (scaling == "linear")
    config_["rope_scaling"] = {{"rope_type", "linear"}, {"factor", f.number("llama.rope.scaling.factor")}};
  else if (scaling == "yarn")
    config_["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", f.number("llama.rope.scaling.factor")},
                               {"original_max_position_embeddings", f.integer("llama.rope.scaling.original_context_length")}};
  else if (scaling != "none")
    throw UnsupportedError("{}: llama.rope.scaling.type \"{}\" is not honoured", where_, scaling);
  for (const auto& [from, to] : {std::pair{"bos_token_id", "bos_token_id"}, {"eos_token_id", "eos_token_id"}})
    if (f.find(std::string("tokenizer.ggml.") + from)) config_[to] = f.integer(std::string("tokenizer.ggml.") + from);
  // Left to the family's default otherwise: a padding id would change which row of the embedding is trained.
  config_["pad_token_id"] = nullptr;

  bool head = false;
  for (const auto& [name, entry] : f.entries()) {
    std::string to;
    int64_t rotated = 0;
    if (name == "token_embd.weight") {
      to = "model.embed_tokens.weight";
      if (entry.shape.rank() == 2) config_["vocab_size"] = entry.shape[0];
    } else if (name == "output_norm.weight") {
      to = "model.norm.weight";
    } else if (name == "output.weight") {
      to = "lm_head.weight";
      head = true;
    } else if (name.rfind("blk.", 0) == 0) {
      const size_t dot = name.find('.', 4), last = name.rfind('.');
      const std::string part = dot < last ? name.substr(dot + 1, last - dot - 1) : "", kind = name.substr(last + 1);
      for (const auto& [from, hf] : kLlamaBlock)
        if (part == from && (kind == "weight" || kind == "bias")) to = "model.layers." + name.substr(4, dot - 4) + "." + hf + "." + kind;
      // Converters order the rows of q and k so that a rotation of neighbours computes what Hugging Face's of halves does.
      if (part == "attn_q") rotated = heads;
      if (part == "attn_k") rotated = kv_heads;
      if (kind == "bias" && (part == "attn_q" || part == "attn_k" || part == "attn_v")) config_["attention_bias"] = true;
    }
    if (to.empty()) throw UnsupportedError("{}: tensor {} belongs to no part of a Llama that is known here", where_, name);
    tensors_.emplace(to, Source{nullptr, name, rotated});
  }
  config_["tie_word_embeddings"] = !head;
}

std::vector<std::string> Package::names() const {
  std::vector<std::string> out;
  for (const auto& [name, source] : tensors_) out.push_back(name);
  return out;
}

HostTensor Package::tensor(const std::string& name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) throw UserError("{}: there is no tensor {}", where_, name);
  const Source& source = found->second;
  if (source.file) return source.file->tensor(source.name);
  HostTensor tensor = gguf_->tensor(source.name);
  if (source.rotated_heads == 0) return tensor;
  const int64_t rows = tensor.shape().rank() == 0 ? 0 : tensor.shape()[0];
  if (rows == 0 || rows % (2 * source.rotated_heads) != 0)
    throw DataError("{}: tensor {} of shape {} does not divide into {} heads", where_, source.name, tensor.shape().to_string(), source.rotated_heads);
  HostTensor out(tensor.dtype(), tensor.shape(), tensor.storage());
  const auto from = tensor.bytes();
  const auto to = out.mutable_bytes();
  const size_t bytes = from.size() / static_cast<size_t>(rows);
  const int64_t width = rows / source.rotated_heads, half = width / 2;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = r / width, within = r % width;  // Hugging Face: channel i of half j is row j · half + i
    const int64_t row = head * width + within % half * 2 + within / half;
    std::copy_n(from.begin() + row * static_cast<int64_t>(bytes), bytes, to.begin() + r * static_cast<int64_t>(bytes));
  }
  return out;
}

}  // namespace hierarchos::formats
