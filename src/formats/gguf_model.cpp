#include "formats/gguf_model.h"

#include <algorithm>

#include "formats/gguf_architectures.h"
#include "formats/shown.h"

namespace hierarchos::formats {

bool GgufKeys::has(const std::string& key) const {
  used_.insert(key);
  return file_.has(prefix_ + key);
}
int64_t GgufKeys::integer(const std::string& key) const {
  used_.insert(key);
  return file_.integer(prefix_ + key);
}
double GgufKeys::number(const std::string& key) const {
  used_.insert(key);
  return file_.number(prefix_ + key);
}
bool GgufKeys::flag(const std::string& key, bool fallback) const {
  used_.insert(key);
  return file_.flag(prefix_ + key, fallback);
}
std::string GgufKeys::text(const std::string& key, const std::string& fallback) const {
  used_.insert(key);
  return file_.text(prefix_ + key, fallback);
}

void GgufKeys::expect(const std::string& key, int64_t value) const {
  if (has(key) && integer(key) != value)
    throw UnsupportedError("{}: the metadata key {}{} is {} and only {} is honoured here", file_.where(), prefix_, key,
                           integer(key), value);
}

void GgufKeys::refuse(const std::string& key) const {
  throw UnsupportedError("{}: the metadata key {} could change what the model computes and is not honoured",
                         file_.where(), shown(prefix_ + key));
}

void GgufKeys::refuse_others() const {
  for (const auto& [key, value] : file_.metadata())
    if (key.starts_with(prefix_) && !used_.count(key.substr(prefix_.size()))) refuse(key.substr(prefix_.size()));
}

namespace {

using Change = GgufTensor::Change;

// "blk.12.attn_q.weight" → "12", "attn_q", "weight"; no block: "", "output_norm", "weight".
struct Split {
  std::string block, part, kind;
};
Split split(const std::string& name) {
  const size_t last = name.rfind('.');
  if (last == std::string::npos) return {};
  Split out{"", name.substr(0, last), name.substr(last + 1)};
  if (!name.starts_with("blk.")) return out;
  const size_t dot = name.find('.', 4);
  out.block = name.substr(4, dot - 4);
  out.part = dot < last ? name.substr(dot + 1, last - dot - 1) : "";
  return out;
}

std::string replaced(std::string text, const std::string& by) {
  const size_t at = text.find("{}");
  return at == std::string::npos ? text : text.replace(at, 2, by);
}

void add_tensors(const GgufKeys& keys, const GgufArchitecture& architecture, GgufModel& model) {
  for (const auto& [name, entry] : keys.file().entries()) {
    if (name.starts_with("rope_f")) continue;  // rope_freqs, rope_factors_long, rope_factors_short: configuration
    const Split at = split(name);
    const auto names = at.block.empty() ? architecture.outside : architecture.block;
    const auto found = std::ranges::find_if(names, [&](const GgufName& n) { return at.part == n.gguf; });
    if (found == names.end() || (at.kind != "weight" && at.kind != "bias"))
      throw UnsupportedError("{}: tensor {} belongs to no part of the architecture {} that is known here",
                             keys.file().where(), shown(name), architecture.name);
    const std::string prefix = at.block.empty() ? "" : replaced(architecture.blocks, at.block) + ".";
    const std::string published = prefix + found->published + "." + at.kind;
    GgufTensor tensor{.name = name, .change = found->change, .heads = keys.heads, .kv_heads = keys.kv_heads};
    if (tensor.change == Change::RotationOrder && at.part == "attn_k") tensor.heads = keys.kv_heads;
    if (tensor.change == Change::Transposed && at.kind == "bias") tensor.change = Change::None;
    if (architecture.norms_plus_one && at.part.ends_with("norm")) tensor.change = Change::MinusOne;
    if (tensor.change != Change::Slice) {
      model.tensors.emplace(published, std::move(tensor));
      continue;
    }
    // A stack of experts, or of one norm a head.
    const int64_t entries = entry.shape.rank() == 0 ? 0 : entry.shape[0];
    const int64_t expected = at.part.ends_with("_exps") ? keys.integer("expert_count", 0)
                             : at.part == "attn_k_norm" ? keys.kv_heads
                                                        : keys.heads;
    if (entries != expected || entry.shape.elements() == 0)
      throw DataError("{}: tensor {} has shape {}, {} entries are expected", keys.file().where(), shown(name),
                      entry.shape.to_string(), expected);
    for (tensor.index = 0; tensor.index < entries; ++tensor.index)
      model.tensors.emplace(replaced(published, std::to_string(tensor.index)), tensor);
  }
}

// Sizes that every architecture has.
void read_sizes(GgufKeys& keys, nlohmann::json& config) {
  const std::string& where = keys.file().where();
  keys.heads = keys.integer("attention.head_count");
  keys.kv_heads = keys.integer("attention.head_count_kv", keys.heads);
  keys.hidden = keys.integer("embedding_length");
  keys.layers = keys.integer("block_count");
  for (int64_t count : {keys.heads, keys.kv_heads, keys.hidden, keys.layers})
    if (count < 1 || count > kMostParts)
      throw DataError("{}: a count of heads or layers, or the width, is {}", where, count);
  keys.head_dim = keys.integer("attention.key_length", keys.hidden / keys.heads);
  keys.expect("attention.value_length", keys.head_dim);
  keys.rotated = keys.integer("rope.dimension_count", keys.head_dim);
  if (keys.head_dim < 1 || keys.rotated < 1 || keys.rotated > keys.head_dim)
    throw DataError("{}: {} of {} elements of a head are to be rotated", where, keys.rotated, keys.head_dim);
  keys.rope_theta = keys.number("rope.freq_base", 10000);
  if (!keys.flag("attention.causal", true)) keys.refuse("attention.causal");
  keys.ignore("rope.scaling.finetuned");

  config = {{"hidden_size", keys.hidden},
            {"num_hidden_layers", keys.layers},
            {"num_attention_heads", keys.heads},
            {"num_key_value_heads", keys.kv_heads},
            {"intermediate_size", keys.integer("feed_forward_length")},
            {"max_position_embeddings", keys.integer("context_length")},
            {"rope_theta", keys.rope_theta},
            // A padding id would change which row of the embedding is trained.
            {"pad_token_id", nullptr}};
  const auto table = keys.file().entries().find("token_embd.weight");
  if (table == keys.file().entries().end() || table->second.shape.rank() != 2)
    throw DataError("{}: there is no matrix token_embd.weight", where);
  config["vocab_size"] = table->second.shape[0];
  if (keys.has("vocab_size") && keys.integer("vocab_size") != table->second.shape[0])
    throw DataError("{}: vocab_size is {}, but token_embd.weight has {} rows", where, keys.integer("vocab_size"),
                    table->second.shape[0]);
  config["tie_word_embeddings"] = !keys.has_tensor("output.weight");
}

// The end of a turn ends an answer as the end of the text does.
void add_special_ids(const GgufFile& file, GgufModel& model) {
  for (const std::string key : {"bos_token_id", "eos_token_id"}) {
    model.config[key] = nullptr;
    if (file.has("tokenizer.ggml." + key)) model.config[key] = file.integer("tokenizer.ggml." + key);
  }
  if (!file.has("tokenizer.ggml.eot_token_id")) return;
  const int64_t turn = file.integer("tokenizer.ggml.eot_token_id");
  if (model.config["eos_token_id"] == turn || model.config["eos_token_id"].is_null()) return;
  model.generation_config = {{"bos_token_id", model.config["bos_token_id"]},
                             {"eos_token_id", {model.config["eos_token_id"], turn}}};
}

}  // namespace

GgufModel gguf_model(const GgufFile& file) {
  const std::string name = file.text("general.architecture");
  const auto architectures = gguf_architectures();
  const auto architecture = std::ranges::find_if(architectures, [&](const GgufArchitecture& a) {
    return a.name == name && (a.with == nullptr || file.entries().count(a.with));
  });
  if (architecture == architectures.end())
    throw UnsupportedError(
        "{}: GGUF files of general.architecture \"{}\" are not read; use the model's Hugging Face folder", file.where(),
        shown(name));
  if (file.integer("split.count", 1) > 1)
    throw UnsupportedError("{}: this is one of {} parts; join them with llama.cpp's llama-gguf-split --merge",
                           file.where(), file.integer("split.count"));

  GgufModel model;
  GgufKeys keys(file, name);
  read_sizes(keys, model.config);
  architecture->configure(keys, model.config);
  keys.refuse_others();
  add_special_ids(file, model);
  add_tensors(keys, *architecture, model);
  return model;
}

}  // namespace hierarchos::formats
