// Where a tokenizer's data come from.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace hierarchos {
namespace {

using nlohmann::json;

// GPT-2's, as tokenizers' ByteLevel has it.
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Llama 3's.
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr int64_t kMostTokens = int64_t{1} << 22;  // what a file may claim

int32_t token_id(int64_t id, const std::string& what, const std::string& where) {
  if (id < 0 || id >= kMostTokens) throw DataError("{}: {} has id {}", where, what, id);
  return static_cast<int32_t>(id);
}

// An object of tokenizer.json: names the keys that are missing, of another kind or not known.
class Object {
 public:
  Object(const json& value, std::string name, const std::string& where)
      : value_(value), name_(std::move(name)), where_(where) {
    if (!value.is_object()) throw DataError("{}: {} is no object", where, name_);
  }
  const json& at(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) throw DataError("{}: {} has no \"{}\"", where_, name_, key);
    return *found;
  }
  bool has(const char* key) const { return value_.contains(key) && !value_[key].is_null(); }
  bool flag(const char* key, bool fallback = false) const {
    if (!has(key)) return fallback;
    if (!at(key).is_boolean()) throw DataError("{}: \"{}\" of {} is neither true nor false", where_, key, name_);
    return at(key).get<bool>();
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) throw DataError("{}: \"{}\" of {} is no text", where_, key, name_);
    return at(key).get<std::string>();
  }
  int64_t integer(const char* key) const {
    if (!at(key).is_number_integer()) throw DataError("{}: \"{}\" of {} is no integer", where_, key, name_);
    return at(key).get<int64_t>();
  }
  void only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : value_.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        throw UnsupportedError("{}: \"{}\" of {} is not supported", where_, key, name_);
  }
  // Is the component of this type? Otherwise it is refused.
  void require_type(std::initializer_list<std::string_view> types) const {
    const std::string type = text("type");
    if (std::find(types.begin(), types.end(), type) == types.end())
      throw UnsupportedError("{}: {} of type \"{}\" is not supported", where_, name_, type);
  }

 private:
  const json& value_;
  std::string name_;
  const std::string& where_;
};

void read_bpe(const json& value, TokenizerData& data) {
  const std::string& where = data.where;
  const Object model(value, "the model", where);
  if (model.has("type")) model.require_type({"BPE"});  // old files do not say it
  model.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.has(key) && !model.text(key).empty())
      throw UnsupportedError("{}: \"{}\" of the model is not supported", where, key);
  for (const char* key : {"byte_fallback", "fuse_unk"})
    if (model.flag(key)) throw UnsupportedError("{}: \"{}\" of the model is not supported", where, key);
  if (model.has("dropout") && model.at("dropout") != 0.0)
    throw UnsupportedError("{}: \"dropout\" of the model is not supported", where);
  data.ignore_merges = model.flag("ignore_merges");

  const json& vocabulary = model.at("vocab");
  if (!vocabulary.is_object()) throw DataError("{}: the model's vocabulary is no object", where);
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer()) throw DataError("{}: the id of token \"{}\" is no integer", where, token);
    const auto i = static_cast<size_t>(token_id(id.get<int64_t>(), "token \"" + token + "\"", where));
    if (i >= data.tokens.size()) data.tokens.resize(i + 1);
    if (!data.tokens[i].empty())
      throw DataError("{}: id {} is both \"{}\" and \"{}\"", where, i, data.tokens[i], token);
    data.tokens[i] = token;
  }
  if (model.has("unk_token")) {
    const auto found = vocabulary.find(model.text("unk_token"));
    if (found == vocabulary.end()) throw DataError("{}: \"unk_token\" is not in the vocabulary", where);
    data.unknown = found->get<int32_t>();
  }

  const json& merges = model.at("merges");
  if (!merges.is_array()) throw DataError("{}: the model's merges are no array", where);
  for (const json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      data.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string pair = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = pair.find(' ');
    if (space == std::string::npos || pair.find(' ', space + 1) != std::string::npos)
      throw DataError("{}: merge {} is no pair of tokens", where, data.merges.size());
    data.merges.emplace_back(pair.substr(0, space), pair.substr(space + 1));
  }
}

// ByteLevel, alone or after others in a Sequence.
void read_pre_tokenizer(const json& value, TokenizerData& data) {
  const Object outer(value, "the pre_tokenizer", data.where);
  outer.require_type({"ByteLevel", "Sequence"});
  std::vector<json> steps{value};
  if (outer.text("type") == "Sequence") {
    outer.only({"type", "pretokenizers"});
    const json& list = outer.at("pretokenizers");
    if (!list.is_array() || list.empty()) throw DataError("{}: the Sequence's pretokenizers are no array", data.where);
    steps = list.get<std::vector<json>>();
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const Object step(steps[i], "the pre_tokenizer", data.where);
    if (i + 1 < steps.size()) {
      step.require_type({"Digits"});
      step.only({"type", "individual_digits"});
      data.splits.push_back({step.flag("individual_digits") ? R"(\p{N})" : R"(\p{N}+)"});
    } else {
      step.require_type({"ByteLevel"});
      step.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
      data.splits.push_back({step.flag("use_regex", true) ? kGpt2 : "", step.flag("add_prefix_space", true)});
    }
  }
}

void read_added(const json& list, TokenizerData& data) {
  if (!list.is_array()) throw DataError("{}: added_tokens is no array", data.where);
  for (const json& value : list) {
    const Object token(value, fmt::format("added token {}", data.added.size()), data.where);
    token.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const std::string text = token.text("content");
    for (const char* key : {"single_word", "lstrip", "rstrip"})
      if (token.flag(key))
        throw UnsupportedError("{}: \"{}\" of added token \"{}\" is not supported", data.where, key, text);
    data.added.push_back({token_id(token.integer("id"), "added token \"" + text + "\"", data.where), text,
                          token.flag("special"), token.flag("normalized", true)});
  }
}

// tokenizer_config.json's bos_token or eos_token: a text, or an object with its "content".
std::optional<int32_t> named_token(const json& config, const char* key, const TokenizerData& data) {
  if (!config.is_object() || !config.contains(key) || config[key].is_null()) return std::nullopt;
  const json& value = config[key].is_object() ? config[key].value("content", json()) : config[key];
  if (!value.is_string()) throw DataError("{}: \"{}\" of tokenizer_config.json is no text", data.where, key);
  const auto text = value.get<std::string>();
  for (const auto& token : data.added)
    if (token.text == text) return token.id;
  const auto found = std::find(data.tokens.begin(), data.tokens.end(), text);
  if (found == data.tokens.end() || text.empty())
    throw DataError("{}: \"{}\" of tokenizer_config.json, \"{}\", is no token", data.where, key, text);
  return static_cast<int32_t>(found - data.tokens.begin());
}

}  // namespace

TokenizerData tokenizer_data(const json& tokenizer, const json& config, const std::string& where) {
  TokenizerData data;
  data.where = where;
  const Object file(tokenizer, "the tokenizer", where);
  // Truncation and padding are settings of a call, which the reference replaces.
  file.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
             "decoder", "model"});
  if (file.has("normalizer")) {
    const Object normalizer(file.at("normalizer"), "the normalizer", where);
    throw UnsupportedError("{}: the normalizer of type \"{}\" is not supported", where, normalizer.text("type"));
  }
  read_bpe(file.at("model"), data);
  read_pre_tokenizer(file.at("pre_tokenizer"), data);
  Object(file.at("decoder"), "the decoder", where).require_type({"ByteLevel"});
  if (file.has("post_processor"))  // this one moves offsets only
    Object(file.at("post_processor"), "the post_processor", where).require_type({"ByteLevel"});
  if (file.has("added_tokens")) read_added(file.at("added_tokens"), data);
  data.bos = named_token(config, "bos_token", data);
  data.eos = named_token(config, "eos_token", data);
  for (const char* key : {"add_bos_token", "add_eos_token"})
    if (config.is_object() && config.value(key, json()) == true)
      throw UnsupportedError("{}: \"{}\" of tokenizer_config.json is not supported", where, key);
  return data;
}

TokenizerData tokenizer_data(const formats::GgufFile& file) {
  TokenizerData data;
  data.where = file.where();
  const std::string& where = data.where;
  if (!file.has("tokenizer.ggml.model")) throw UserError("{}: there is no tokenizer in this file", where);
  if (const std::string model = file.text("tokenizer.ggml.model"); model != "gpt2")
    throw UnsupportedError("{}: tokenizer.ggml.model \"{}\" is not supported", where, model);
  const std::string pre = file.text("tokenizer.ggml.pre", "default");
  const bool llama3 = pre == "llama-bpe";
  if (pre == "smollm") {
    data.splits = {{R"(\p{N})"}, {kGpt2}};
  } else if (pre == "default" || pre == "gpt-2") {
    data.splits = {{kGpt2}};
  } else if (llama3) {
    data.splits = {{kLlama3}};
    data.ignore_merges = true;
  } else {
    throw UnsupportedError("{}: tokenizer.ggml.pre \"{}\" is not supported", where, pre);
  }
  if (file.flag("tokenizer.ggml.add_space_prefix", false))
    throw UnsupportedError("{}: tokenizer.ggml.add_space_prefix is not supported", where);
  if (file.flag("tokenizer.ggml.add_sep_token", false))
    throw UnsupportedError("{}: tokenizer.ggml.add_sep_token is not supported", where);

  data.tokens = file.texts("tokenizer.ggml.tokens");
  for (const std::string& merge : file.texts("tokenizer.ggml.merges")) {
    const size_t space = merge.find(' ', 1);
    if (merge.empty() || space == std::string::npos)
      throw DataError("{}: tokenizer.ggml.merges: \"{}\" is no pair of tokens", where, merge);
    data.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  // ggml's kinds: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
  if (file.has("tokenizer.ggml.token_type")) {
    const std::vector<int64_t> kinds = file.integers("tokenizer.ggml.token_type");
    if (kinds.size() != data.tokens.size())
      throw DataError("{}: {} tokens, but {} types of tokens", where, data.tokens.size(), kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i)
      if (kinds[i] >= 2 && kinds[i] <= 4 && !data.tokens[i].empty())
        data.added.push_back({static_cast<int32_t>(i), data.tokens[i], kinds[i] != 4});
  }
  const auto id = [&](const char* key) {
    return file.has(key) ? std::optional(token_id(file.integer(key), key, where)) : std::nullopt;
  };
  data.bos = id("tokenizer.ggml.bos_token_id");
  data.eos = id("tokenizer.ggml.eos_token_id");
  data.add_bos = file.flag("tokenizer.ggml.add_bos_token", llama3);  // as llama.cpp has it
  data.add_eos = file.flag("tokenizer.ggml.add_eos_token", false);
  return data;
}

}  // namespace hierarchos
