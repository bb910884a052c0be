// The model of a tokenizer.json.
#include <limits>

#include "base/error.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/simple.h"

namespace hierarchos::tokenizers {
namespace {

using simdjson::SUCCESS;

std::string_view to_text(Json value, const Place& place, std::string_view what) {
  std::string_view text;
  if (value.get_string().get(text) != SUCCESS) throw DataError("{}: {} is no text", place.name, what);
  return text;
}

// Merges are pairs, or texts with one space; old files begin with a line "#version".
void read_merges(const Object& o, BpeOptions& options) {
  const auto merges = o.array("merges");
  options.merges.reserve(merges.size());
  bool pairs = false, lines = false;
  for (const Json merge : merges) {
    const auto complain = [&] {
      throw DataError("{}: merge {} is no pair of tokens", o.place().name, options.merges.size());
    };
    simdjson::dom::array pair;
    if (merge.get_array().get(pair) == SUCCESS) {
      pairs = true;
      if (pair.size() != 2) complain();
      std::string_view sides[2];
      size_t i = 0;
      for (const Json side : pair) sides[i++] = to_text(side, o.place(), "a token of a merge");
      options.merges.emplace_back(sides[0], sides[1]);
    } else {
      lines = true;
      const std::string_view line = to_text(merge, o.place(), "a merge");
      if (line.starts_with("#version")) continue;
      const size_t space = line.find(' ');
      if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) complain();
      options.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    }
    if (pairs && lines) throw DataError("{}: merges are both pairs and texts", o.place().name);
  }
}

std::unique_ptr<Model> read_bpe(const Object& o) {
  BpeOptions options;
  options.where = o.place().name;
  options.vocabulary = read_vocabulary(o.at("vocab"), o.place());
  read_merges(o, options);
  const auto text = [&](const char* key) { return o.has(key) ? o.text(key) : ""; };
  options.unknown = text("unk_token");
  options.prefix = text("continuing_subword_prefix");
  options.suffix = text("end_of_word_suffix");
  options.fuse_unknown = o.flag("fuse_unk", false);
  options.byte_fallback = o.flag("byte_fallback", false);
  options.ignore_merges = o.flag("ignore_merges", false);
  options.dropout = o.has("dropout") ? o.number("dropout") : 0;
  return std::make_unique<Bpe>(std::move(options));
}

std::unique_ptr<Model> read_unigram(const Object& o) {
  std::vector<Unigram::Piece> pieces;
  for (const Json item : o.array("vocab")) {
    simdjson::dom::array pair;
    if (item.get_array().get(pair) != SUCCESS || pair.size() != 2)
      throw DataError("{}: token {} is no pair of a text and a score", o.place().name, pieces.size());
    Unigram::Piece piece;
    piece.text = to_text(pair.at(0).value(), o.place(), "a token");
    if (pair.at(1).get_double().get(piece.score) != SUCCESS)
      throw DataError("{}: the score of token {} is no number", o.place().name, pieces.size());
    pieces.push_back(piece);
  }
  std::optional<int32_t> unknown;
  if (o.has("unk_id")) unknown = o.id("unk_id");
  return std::make_unique<Unigram>(pieces, unknown, o.find("byte_fallback") && o.flag("byte_fallback"), o.place().name);
}

std::unique_ptr<Model> read_word_piece(const Object& o) {
  return std::make_unique<WordPiece>(
      read_vocabulary(o.at("vocab"), o.place()),
      WordPiece::Options{o.place().name, o.text("unk_token"), o.text("continuing_subword_prefix"),
                         o.size("max_input_chars_per_word")});
}

// Old files leave the type out: the first whose fields are there.
std::string type_of(const Object& o) {
  if (o.has("type")) return o.text("type");
  if (o.find("merges")) return "BPE";
  if (o.find("continuing_subword_prefix") && o.find("max_input_chars_per_word")) return "WordPiece";
  if (o.find("unk_token")) return "WordLevel";
  return "Unigram";
}

}  // namespace

Vocabulary read_vocabulary(Json value, const Place& place) {
  simdjson::dom::object object;
  if (value.get_object().get(object) != SUCCESS) throw DataError("{}: the vocabulary is no object", place.name);
  size_t tokens = 0, bytes = 0;
  for (const auto field : object) ++tokens, bytes += field.key.size();
  Vocabulary vocabulary;
  vocabulary.reserve(tokens, bytes);
  for (const auto field : object) {
    uint64_t id = 0;
    if (field.value.get_uint64().get(id) != SUCCESS || id > std::numeric_limits<int32_t>::max())
      throw DataError("{}: the id of token \"{}\" is no integer from 0 to 2147483647", place.name, field.key);
    vocabulary.add(field.key, static_cast<int32_t>(id));
  }
  vocabulary.finish();
  return vocabulary;
}

std::unique_ptr<Model> read_model(Json value, const Place& place) {
  const Object o(value, place);
  const std::string type = type_of(o);
  if (type == "BPE") return read_bpe(o);
  if (type == "Unigram") return read_unigram(o);
  if (type == "WordPiece") return read_word_piece(o);
  if (type == "WordLevel")
    return std::make_unique<WordLevel>(read_vocabulary(o.at("vocab"), o.place()), o.text("unk_token"), o.place().name);
  throw UnsupportedError("{} of type \"{}\" is not supported", place.name, type);
}

}  // namespace hierarchos::tokenizers
