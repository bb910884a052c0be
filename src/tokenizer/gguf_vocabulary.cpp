// Vocabularies of GGUF files (tokenizer.ggml.*), read as llama.cpp reads them.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/simple.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/sources.h"

namespace hierarchos::tokenizers {
namespace {

using formats::GgufFile;

std::optional<int32_t> id_of(const GgufFile& file, const char* key) {
  if (!file.has(key)) return std::nullopt;
  const int64_t id = file.integer(key);
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) throw DataError("{}: {} is {}", file.where(), key, id);
  return static_cast<int32_t>(id);
}

std::vector<SpmPiece> read_pieces(const GgufFile& file) {
  const std::vector<std::string> tokens = file.texts("tokenizer.ggml.tokens");
  std::vector<int64_t> types(tokens.size(), SpmPiece::Normal);
  if (file.has("tokenizer.ggml.token_type")) types = file.integers("tokenizer.ggml.token_type");
  std::vector<double> scores(tokens.size(), 0);
  if (file.has("tokenizer.ggml.scores")) scores = file.numbers("tokenizer.ggml.scores");
  if (types.size() != tokens.size() || scores.size() != tokens.size())
    throw DataError("{}: {} tokens, but {} types of tokens and {} scores", file.where(), tokens.size(), types.size(),
                    scores.size());
  std::vector<SpmPiece> pieces;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (types[i] < SpmPiece::Normal || types[i] > SpmPiece::Byte)
      throw DataError("{}: token {} is of type {}", file.where(), i, types[i]);
    if (!unicode::is_valid(tokens[i])) throw DataError("{}: token {} is no UTF-8", file.where(), i);
    pieces.push_back({tokens[i], static_cast<float>(scores[i]), static_cast<SpmPiece::Type>(types[i])});
  }
  return pieces;
}

// Tokens that are matched in the text before anything else.
std::vector<AddedToken> added_tokens(const std::vector<SpmPiece>& pieces) {
  std::vector<AddedToken> out;
  for (const SpmPiece& piece : pieces) {
    const bool special = piece.type == SpmPiece::Control || piece.type == SpmPiece::Unknown;
    if (special || piece.type == SpmPiece::UserDefined)
      out.push_back({piece.text, false, false, false, false, special});
  }
  return out;
}

// A component as tokenizer.json spells it.
template <typename Read>
auto component(Read read, const std::string& json, const std::string& where) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(json);
  Json value;
  if (parser.parse(padded).get(value) != simdjson::SUCCESS) throw DataError("{}: {}", where, json);
  return read(value, Place{where});
}

std::string json_text(std::string_view text) { return nlohmann::json(text).dump(); }

std::unique_ptr<PreTokenizer> cut_by(const std::vector<std::string>& patterns, const std::string& where) {
  std::string steps;
  for (const std::string& pattern : patterns)
    steps += fmt::format(R"({{"type":"Split","pattern":{{"Regex":{}}},"behavior":"Isolated","invert":false}},)",
                         json_text(pattern));
  steps += R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false})";
  return component(read_pre_tokenizer, R"({"type":"Sequence","pretokenizers":[)" + steps + "]}", where);
}

// BOS and EOS around a text.
void add_ends(Loaded& loaded, bool add_bos, bool add_eos, std::optional<int32_t> eos) {
  std::vector<TemplateToken> single, pair;
  const auto special = [](int32_t id, int32_t type) { return TemplateToken{"", false, type, {id}}; };
  if (add_bos && loaded.bos) single.push_back(special(*loaded.bos, 0));
  single.push_back({"A", true, 0, {}});
  if (add_eos && eos) single.push_back(special(*eos, 0));
  pair = single;
  if (add_bos && loaded.bos && !add_eos) pair.push_back(special(*loaded.bos, 1));
  pair.push_back({"B", true, 1, {}});
  if (add_eos && eos) pair.push_back(special(*eos, 1));
  if (single.size() > 1) loaded.parts.post_processor = make_template(std::move(single), std::move(pair));
}

void read_gpt2(const GgufFile& file, Loaded& loaded) {
  const std::string& where = file.where();
  const std::vector<SpmPiece> pieces = read_pieces(file);
  const std::string name = file.text("tokenizer.ggml.pre", "default");
  const GgufPattern* pattern = find_gguf_pattern(name);
  if (!pattern) throw UnsupportedError("{}: tokenizer.ggml.pre \"{}\" is not supported", where, name);
  if (file.flag("tokenizer.ggml.add_space_prefix", false))
    throw UnsupportedError("{}: tokenizer.ggml.add_space_prefix is not supported for this vocabulary", where);
  if (file.flag("tokenizer.ggml.add_sep_token", false))
    throw UnsupportedError("{}: tokenizer.ggml.add_sep_token is not supported for this vocabulary", where);

  BpeOptions options;
  options.where = where;
  options.ignore_merges = pattern->ignore_merges;
  options.vocabulary.reserve(pieces.size(), pieces.size() * 8);
  for (size_t i = 0; i < pieces.size(); ++i)
    if (!pieces[i].text.empty()) options.vocabulary.add(pieces[i].text, static_cast<int32_t>(i));
  options.vocabulary.finish();
  const std::vector<std::string> merges = file.texts("tokenizer.ggml.merges");
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ', 1);
    if (merge.empty() || space == std::string::npos)
      throw DataError("{}: tokenizer.ggml.merges: \"{}\" is no pair of tokens", where, merge);
    options.merges.emplace_back(std::string_view(merge).substr(0, space), std::string_view(merge).substr(space + 1));
  }
  loaded.parts.model = std::make_unique<Bpe>(std::move(options));
  loaded.parts.pre_tokenizer = cut_by(pattern->patterns, where);
  loaded.parts.decoder = component(
      read_decoder, R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false})", where);
  loaded.parts.added = added_tokens(pieces);
  add_ends(loaded, file.flag("tokenizer.ggml.add_bos_token", pattern->add_bos),
           file.flag("tokenizer.ggml.add_eos_token", false), loaded.eos);
}

// Llama's and T5's: SentencePiece. A text that stands after a special token gets a space before it, too.
void read_spm(const GgufFile& file, Loaded& loaded, SpmModel::Kind kind) {
  SpmModel model;
  model.where = file.where();
  model.kind = kind;
  model.pieces = read_pieces(file);
  const bool unigram = kind == SpmModel::Unigram;
  model.byte_fallback = std::count_if(model.pieces.begin(), model.pieces.end(),
                                      [](const SpmPiece& piece) { return piece.type == SpmPiece::Byte; }) == 256;
  model.add_dummy_prefix = file.flag("tokenizer.ggml.add_space_prefix", true);
  model.remove_extra_whitespaces = file.flag("tokenizer.ggml.remove_extra_whitespaces", false);
  if (file.has("tokenizer.ggml.precompiled_charsmap"))
    for (const int64_t byte : file.integers("tokenizer.ggml.precompiled_charsmap"))
      model.character_map += static_cast<char>(byte);
  std::vector<AddedToken> added = added_tokens(model.pieces);
  // User-defined pieces are found before the model sees the text, so to the model they are pieces like others.
  for (SpmPiece& piece : model.pieces)
    if (piece.type == SpmPiece::UserDefined) piece.type = SpmPiece::Normal;
  loaded.parts = make_parts(std::move(model));
  loaded.parts.added = std::move(added);
  add_ends(loaded, file.flag("tokenizer.ggml.add_bos_token", !unigram),
           file.flag("tokenizer.ggml.add_eos_token", unigram), loaded.eos);
}

// BERT's: pieces that begin a word have a mark, those that go on have none, the other way round than in vocab.txt.
void read_bert(const GgufFile& file, Loaded& loaded) {
  const std::string& where = file.where();
  constexpr std::string_view kMark = "\xE2\x96\x81";
  Vocabulary vocabulary;
  const std::vector<SpmPiece> pieces = read_pieces(file);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view text = pieces[i].text;
    const bool special = pieces[i].type == SpmPiece::Control || pieces[i].type == SpmPiece::Unknown;
    const auto id = static_cast<int32_t>(i);
    if (special)
      vocabulary.add(text, id);
    else if (text.starts_with(kMark))
      vocabulary.add(text.substr(kMark.size()), id);
    else
      vocabulary.add("##" + std::string(text), id);
  }
  vocabulary.finish();
  const std::optional<int32_t> unknown = id_of(file, "tokenizer.ggml.unknown_token_id");
  const int32_t unknown_id = unknown.value_or(100);
  if (static_cast<size_t>(unknown_id) >= pieces.size())
    throw DataError("{}: the unknown token {} is not among the {} tokens", where, unknown_id, pieces.size());
  WordPiece::Options options{where, pieces[static_cast<size_t>(unknown_id)].text, "##",
                             std::numeric_limits<uint64_t>::max()};
  loaded.parts.model = std::make_unique<WordPiece>(std::move(vocabulary), std::move(options));
  loaded.parts.normalizer = component(
      read_normalizer,
      R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true})",
      where);
  loaded.parts.pre_tokenizer = component(read_pre_tokenizer, R"({"type":"BertPreTokenizer"})", where);
  loaded.parts.decoder = component(read_decoder, R"({"type":"WordPiece","prefix":"##","cleanup":true})", where);
  loaded.parts.added = added_tokens(pieces);
  const auto cls = loaded.bos ? loaded.bos : id_of(file, "tokenizer.ggml.cls_token_id");
  const auto sep = id_of(file, "tokenizer.ggml.seperator_token_id");  // spelled so in the format
  loaded.bos = cls;
  add_ends(loaded, file.flag("tokenizer.ggml.add_bos_token", true), file.flag("tokenizer.ggml.add_eos_token", true),
           sep ? sep : loaded.eos);
}

}  // namespace

Loaded load_gguf(const GgufFile& file) {
  if (!file.has("tokenizer.ggml.model")) throw UserError("{}: there is no tokenizer in this file", file.where());
  Loaded loaded;
  loaded.parts.where = file.where();
  loaded.bos = id_of(file, "tokenizer.ggml.bos_token_id");
  loaded.eos = id_of(file, "tokenizer.ggml.eos_token_id");
  const std::string model = file.text("tokenizer.ggml.model");
  if (model == "gpt2")
    read_gpt2(file, loaded);
  else if (model == "llama")
    read_spm(file, loaded, SpmModel::Bpe);
  else if (model == "t5")
    read_spm(file, loaded, SpmModel::Unigram);
  else if (model == "bert")
    read_bert(file, loaded);
  else
    throw UnsupportedError("{}: tokenizer.ggml.model \"{}\" is not supported", file.where(), model);
  loaded.parts.where = file.where();
  return loaded;
}

}  // namespace hierarchos::tokenizers
