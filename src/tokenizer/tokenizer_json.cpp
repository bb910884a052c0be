// Reading of tokenizer.json.
#include <array>

#include "base/error.h"
#include "tokenizer/sources.h"

namespace hierarchos::tokenizers {
namespace {

void check_keys(const Object& file) {
  constexpr std::array<std::string_view, 9> kKnown = {"version",        "truncation", "padding",
                                                      "added_tokens",   "normalizer", "pre_tokenizer",
                                                      "post_processor", "decoder",    "model"};
  for (const auto field : file.fields())
    if (std::find(kKnown.begin(), kKnown.end(), field.key) == kKnown.end())
      throw UnsupportedError("{}: the key \"{}\" is not supported", file.place().name, field.key);
  if (file.find("version") && file.text("version") != "1.0")
    throw UnsupportedError("{}: version \"{}\" is not supported", file.place().name, file.text("version"));
}

std::vector<AddedToken> read_added(const Object& file) {
  std::vector<AddedToken> out;
  for (const Json value : file.array("added_tokens")) {
    const Object o(value, file.inside(fmt::format("added token {}", out.size())));
    o.id("id");  // must be there, but the token's place in the list decides, as for the reference
    out.push_back({o.text("content"), o.flag("single_word"), o.flag("lstrip"), o.flag("rstrip"), o.flag("normalized"),
                   o.flag("special")});
  }
  return out;
}

}  // namespace

Parts parts_from_json(std::string_view text, const std::string& where) {
  simdjson::dom::parser parser;
  Json root;
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS)
    throw DataError("{}: {}", where, simdjson::error_message(error));
  const Object file(root, Place{where});
  check_keys(file);
  Parts parts;
  parts.where = where;
  if (file.has("normalizer")) parts.normalizer = read_normalizer(file.at("normalizer"), file.inside("normalizer"));
  if (file.has("pre_tokenizer"))
    parts.pre_tokenizer = read_pre_tokenizer(file.at("pre_tokenizer"), file.inside("pre_tokenizer"));
  parts.model = read_model(file.at("model"), file.inside("model"));
  if (file.has("post_processor"))
    parts.post_processor = read_post_processor(file.at("post_processor"), file.inside("post_processor"));
  if (file.has("decoder")) parts.decoder = read_decoder(file.at("decoder"), file.inside("decoder"));
  if (file.find("added_tokens")) parts.added = read_added(file);
  if (file.has("truncation")) parts.truncation = Truncation::read(file.at("truncation"), file.inside("truncation"));
  if (file.has("padding")) parts.padding = Padding::read(file.at("padding"), file.inside("padding"));
  return parts;
}

std::unique_ptr<Pipeline> Pipeline::from_json(std::string_view text, const std::string& where) {
  return std::make_unique<Pipeline>(parts_from_json(text, where));
}

}  // namespace hierarchos::tokenizers
