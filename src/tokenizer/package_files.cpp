// The tokenizer of a folder as Hugging Face lays it out, as transformers 5 reads it. A tokenizer.json is the whole
// tokenizer but for the names of special tokens (add_bos_token and add_eos_token do not count then); without one the
// tokenizer is built from the older files.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/os/file.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/simple.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/sources.h"

namespace hierarchos::tokenizers {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// tokenizer_config.json, with what special_tokens_map.json adds to it.
class Config {
 public:
  explicit Config(const fs::path& folder) : where_((folder / "tokenizer_config.json").string()) {
    if (file_exists(folder / "tokenizer_config.json")) value_ = read_json_file(folder / "tokenizer_config.json");
    if (value_.is_null()) value_ = json::object();
    if (!value_.is_object()) throw DataError("{} is no object", where_);
    if (!file_exists(folder / "special_tokens_map.json")) return;
    const json map = read_json_file(folder / "special_tokens_map.json");
    if (!map.is_object()) throw DataError("{}: special_tokens_map.json is no object", folder.string());
    for (const auto& [key, value] : map.items())
      if (!value_.contains(key) || value_[key].is_null()) value_[key] = value;
  }
  bool flag(const char* key, bool fallback) const {
    if (!value_.contains(key) || value_[key].is_null()) return fallback;
    if (!value_[key].is_boolean()) throw DataError("{}: \"{}\" is neither true nor false", where_, key);
    return value_[key].get<bool>();
  }
  // Of a text, or an object with "content"; "" where there is none.
  std::string token(const char* key) const { return value_.contains(key) ? content(value_[key], key) : ""; }
  std::string text(const char* key) const {
    return value_.contains(key) && value_[key].is_string() ? value_[key].get<std::string>() : "";
  }
  std::vector<AddedToken> special_tokens() const;
  std::vector<AddedToken> added_tokens() const;
  const std::string& where() const { return where_; }

 private:
  std::string content(const json& value, const std::string& key) const {
    const json& text = value.is_object() && value.contains("content") ? value["content"] : value;
    if (text.is_null()) return "";
    if (!text.is_string()) throw DataError("{}: \"{}\" is no token", where_, key);
    return text.get<std::string>();
  }
  AddedToken added(const json& value, const std::string& key, bool special) const;
  json value_;
  std::string where_;
};

AddedToken Config::added(const json& value, const std::string& key, bool special) const {
  AddedToken out;
  out.content = content(value, key);
  const auto flag = [&](const char* name, bool fallback) {
    if (!value.is_object() || !value.contains(name) || value[name].is_null()) return fallback;
    if (!value[name].is_boolean()) throw DataError("{}: \"{}\" of \"{}\" is neither true nor false", where_, name, key);
    return value[name].get<bool>();
  };
  out.special = flag("special", special);
  out.single_word = flag("single_word", false);
  out.lstrip = flag("lstrip", false);
  out.rstrip = flag("rstrip", false);
  out.normalized = flag("normalized", !out.special);
  return out;
}

std::vector<AddedToken> Config::special_tokens() const {
  std::vector<AddedToken> out;
  const auto add = [&](const json& value, const std::string& key) {
    AddedToken token = added(value, key, true);
    token.special = true;
    if (!token.content.empty()) out.push_back(std::move(token));
  };
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (value_.contains(key)) add(value_[key], key);
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (!value_.contains(key) || value_[key].is_null()) continue;
    if (!value_[key].is_array() && !value_[key].is_object()) throw DataError("{}: \"{}\" is no list", where_, key);
    for (const json& item : value_[key]) add(item, key);
  }
  return out;
}

std::vector<AddedToken> Config::added_tokens() const {
  std::map<int64_t, AddedToken> by_id;
  if (!value_.contains("added_tokens_decoder") || value_["added_tokens_decoder"].is_null()) return {};
  if (!value_["added_tokens_decoder"].is_object()) throw DataError("{}: \"added_tokens_decoder\" is no object", where_);
  for (const auto& [key, value] : value_["added_tokens_decoder"].items()) {
    if (key.empty() || key.size() > 10 || key.find_first_not_of("0123456789") != std::string::npos)
      throw DataError("{}: \"added_tokens_decoder\" has the id \"{}\"", where_, key);
    by_id[std::stoll(key)] = added(value, key, false);
  }
  std::vector<AddedToken> out;
  for (auto& [id, token] : by_id) out.push_back(std::move(token));
  return out;
}

// added_tokens.json: {"token": id}.
std::vector<AddedToken> read_added_file(const fs::path& path, const std::vector<AddedToken>& special) {
  if (!file_exists(path)) return {};
  const json value = read_json_file(path);
  if (!value.is_object()) throw DataError("{} is no object", path.string());
  std::map<int64_t, std::string> by_id;
  for (const auto& [token, id] : value.items()) {
    if (!id.is_number_integer()) throw DataError("{}: the id of \"{}\" is no integer", path.string(), token);
    by_id[id.get<int64_t>()] = token;
  }
  std::vector<AddedToken> out;
  for (const auto& [id, token] : by_id) {
    const bool is_special =
        std::any_of(special.begin(), special.end(), [&](const AddedToken& s) { return s.content == token; });
    out.push_back({token, false, false, false, !is_special, is_special});
  }
  return out;
}

void append_new(std::vector<AddedToken>& to, const std::vector<AddedToken>& more, bool by_content) {
  for (const AddedToken& token : more) {
    const bool there = std::any_of(to.begin(), to.end(), [&](const AddedToken& t) {
      return by_content ? t.content == token.content : t == token;
    });
    if (!there) to.push_back(token);
  }
}

std::string bare_class(const Config& config) {
  std::string name = config.text("tokenizer_class");
  for (const std::string_view end : {"Fast", "Tokenizer"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

void add_template(Parts& parts, const std::vector<std::string>& before, const std::vector<std::string>& after,
                  bool separate_pairs) {
  const auto item = [&](const std::string& token, int32_t type) {
    std::optional<int32_t> id = parts.model->id_of(token);
    if (!id)
      throw DataError("{}: the token \"{}\", which stands around each text, is not in the vocabulary", parts.where,
                      token);
    return TemplateToken{token, false, type, {*id}};
  };
  std::vector<TemplateToken> single, pair;
  for (const std::string& token : before) single.push_back(item(token, 0));
  single.push_back({"A", true, 0, {}});
  for (const std::string& token : after) single.push_back(item(token, 0));
  pair = single;
  if (separate_pairs)
    for (const std::string& token : before) pair.push_back(item(token, 1));
  pair.push_back({"B", true, 1, {}});
  for (const std::string& token : after) pair.push_back(item(token, 1));
  parts.post_processor = make_template(std::move(single), std::move(pair));
}

void add_bos_eos(Parts& parts, const Config& config, bool bos_default, bool eos_default) {
  std::vector<std::string> before, after;
  const std::string bos = config.token("bos_token"), eos = config.token("eos_token");
  if (config.flag("add_bos_token", bos_default) && !bos.empty()) before.push_back(bos);
  if (config.flag("add_eos_token", eos_default) && !eos.empty()) after.push_back(eos);
  if (!before.empty() || !after.empty()) add_template(parts, before, after, true);
}

template <typename Read>
auto component(Read read, const std::string& text, const std::string& where) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(text);
  Json value;
  if (parser.parse(padded).get(value) != simdjson::SUCCESS) throw DataError("{}: {}", where, text);
  return read(value, Place{where});
}

const char* yes(bool value) { return value ? "true" : "false"; }

Parts from_sentencepiece(const fs::path& path, const Config& config) {
  const std::string kind = bare_class(config);
  SpmModel model = SpmModel::read(read_text_file(path), path.string());
  std::vector<AddedToken> added;
  for (SpmPiece& piece : model.pieces) {
    const bool special = piece.type == SpmPiece::Control || piece.type == SpmPiece::Unknown;
    if (special || piece.type == SpmPiece::UserDefined)
      added.push_back({piece.text, false, false, false, false, special});
  }
  // Before "legacy" was false, each text after a special token got a space before it; since then only the first does.
  model.dummy_prefix_first_only = !config.flag("legacy", kind != "Llama");
  Parts parts = make_parts(std::move(model));
  parts.added = std::move(added);
  add_bos_eos(parts, config, false, kind == "T5");
  return parts;
}

Parts from_vocab_and_merges(const fs::path& folder, const Config& config) {
  const std::string kind = bare_class(config);
  const std::string where = (folder / "vocab.json").string();
  static constexpr std::string_view kByteLevel[] = {"", "GPT2", "Roberta", "Bart", "Qwen2"};
  if (std::find(std::begin(kByteLevel), std::end(kByteLevel), kind) == std::end(kByteLevel))
    throw UnsupportedError("{}: the tokenizer_class \"{}\" is not supported without a tokenizer.json", config.where(),
                           config.text("tokenizer_class"));
  const bool roberta = kind == "Roberta" || kind == "Bart", qwen = kind == "Qwen2";
  const bool prefix = config.flag("add_prefix_space", false);
  Parts parts;
  parts.where = where;
  BpeOptions options;
  options.where = where;
  const std::string vocabulary = read_text_file(folder / "vocab.json"), merges = read_text_file(folder / "merges.txt");
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(vocabulary);
  Json root;
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS)
    throw DataError("{}: {}", where, simdjson::error_message(error));
  options.vocabulary = read_vocabulary(root, Place{where});
  for (size_t begin = 0; begin < merges.size();) {
    const size_t end = std::min(merges.find('\n', begin), merges.size());
    std::string_view line(merges.data() + begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw DataError("{}: \"{}\" is no pair of tokens", (folder / "merges.txt").string(), line);
    options.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  parts.model = std::make_unique<Bpe>(std::move(options));
  const std::string level =
      fmt::format(R"({{"type":"ByteLevel","add_prefix_space":{},"trim_offsets":{},"use_regex":{}}})", yes(prefix),
                  yes(roberta), yes(!qwen));
  if (qwen) {
    parts.normalizer = component(read_normalizer, R"({"type":"NFC"})", where);
    const std::string split = json(find_gguf_pattern("qwen2")->patterns[0]).dump();
    parts.pre_tokenizer = component(read_pre_tokenizer,
                                    R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" +
                                        split + R"(},"behavior":"Isolated","invert":false},)" + level + "]}",
                                    where);
  } else {
    parts.pre_tokenizer = component(read_pre_tokenizer, level, where);
  }
  parts.decoder = component(read_decoder, level, where);
  if (roberta) {
    const auto token = [&](const char* key, const char* fallback) {
      const std::string text = config.token(key).empty() ? fallback : config.token(key);
      const auto id = parts.model->id_of(text);
      if (!id) throw DataError("{}: the token \"{}\" is not in the vocabulary", where, text);
      return fmt::format("[{},{}]", json(text).dump(), *id);
    };
    parts.post_processor = component(
        read_post_processor,
        fmt::format(R"({{"type":"RobertaProcessing","sep":{},"cls":{},"trim_offsets":true,"add_prefix_space":{}}})",
                    token("sep_token", "</s>"), token("cls_token", "<s>"), yes(prefix)),
        where);
  } else {
    add_bos_eos(parts, config, false, false);
  }
  return parts;
}

Parts from_vocab_txt(const fs::path& path, const Config& config) {
  const std::string kind = bare_class(config), where = path.string();
  static constexpr std::string_view kBertLike[] = {"", "Bert", "DistilBert", "Electra", "MobileBert"};
  if (std::find(std::begin(kBertLike), std::end(kBertLike), kind) == std::end(kBertLike))
    throw UnsupportedError("{}: the tokenizer_class \"{}\" is not supported without a tokenizer.json", config.where(),
                           config.text("tokenizer_class"));
  const std::string text = read_text_file(path);
  if (!unicode::is_valid(text)) throw DataError("{} is no UTF-8", where);
  Vocabulary vocabulary;
  int32_t id = 0;
  for (size_t begin = 0; begin < text.size(); ++id) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    while (!line.empty() && (unicode::flags(unicode::last(line)) & unicode::kWhitespace))
      line.remove_suffix(unicode::width(unicode::last(line)));
    vocabulary.add(line, id);
  }
  vocabulary.finish();
  const auto token = [&](const char* key, const char* fallback) {
    const std::string name = config.token(key);
    return name.empty() ? std::string(fallback) : name;
  };
  const std::string unknown = token("unk_token", "[UNK]");
  Parts parts;
  parts.where = where;
  parts.model = std::make_unique<WordPiece>(std::move(vocabulary), WordPiece::Options{where, unknown, "##", 100});
  const bool lower = config.flag("do_lower_case", true);
  parts.normalizer = component(
      read_normalizer,
      fmt::format(
          R"({{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":{},"strip_accents":{},"lowercase":{}}})",
          yes(config.flag("tokenize_chinese_chars", true)), yes(config.flag("strip_accents", lower)), yes(lower)),
      where);
  parts.pre_tokenizer = component(read_pre_tokenizer, R"({"type":"BertPreTokenizer"})", where);
  parts.decoder = component(read_decoder, R"({"type":"WordPiece","prefix":"##","cleanup":true})", where);
  const std::string cls = token("cls_token", "[CLS]"), sep = token("sep_token", "[SEP]");
  add_template(parts, {cls}, {sep}, false);
  for (const std::string& special : {unknown, sep, token("pad_token", "[PAD]"), cls, token("mask_token", "[MASK]")})
    if (parts.model->id_of(special)) parts.added.push_back({special, false, false, false, false, true});
  return parts;
}

}  // namespace

Loaded load_folder(const fs::path& folder) {
  const Config config(folder);
  Loaded loaded;
  const fs::path whole = folder / "tokenizer.json";
  const bool has_whole = file_exists(whole);
  if (has_whole)
    loaded.parts = parts_from_json(read_text_file(whole), whole.string());
  else if (file_exists(folder / "tokenizer.model"))
    loaded.parts = from_sentencepiece(folder / "tokenizer.model", config);
  else if (file_exists(folder / "vocab.json") && file_exists(folder / "merges.txt"))
    loaded.parts = from_vocab_and_merges(folder, config);
  else if (file_exists(folder / "vocab.txt"))
    loaded.parts = from_vocab_txt(folder / "vocab.txt", config);
  else
    throw UserError("{}: there is no tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt here",
                    folder.string());
  const std::vector<AddedToken> special = config.special_tokens();
  append_new(loaded.parts.added, config.added_tokens(), false);
  if (!has_whole) append_new(loaded.parts.added, read_added_file(folder / "added_tokens.json", special), true);
  append_new(loaded.parts.added, special, true);
  loaded.parts.special_as_text = config.flag("split_special_tokens", false);
  loaded.bos_token = config.token("bos_token");
  loaded.eos_token = config.token("eos_token");
  return loaded;
}

}  // namespace hierarchos::tokenizers
