#include "tokenizer/post_processors.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace hierarchos::tokenizers {
namespace {

// White space that a token begins or ends with is not part of where it stands. One space before the first word stays if
// it was not in the text.
void trim(Encoding& encoding, bool prefix_space) {
  for (size_t i = 0; i < encoding.spaces.size() && i < encoding.offsets.size(); ++i) {
    Offsets& at = encoding.offsets[i];
    auto [leading, trailing] = encoding.spaces[i];
    if (leading > 0) {
      if ((i == 0 || at.begin == 0) && prefix_space && leading == 1) leading = 0;
      at.begin = std::min(at.begin + leading, at.end);
    }
    if (trailing > 0 && at.end >= trailing) at.end = std::max(at.end - trailing, at.begin);
  }
}

void trim_all(std::vector<Encoding>& encodings, bool prefix_space) {
  for (Encoding& encoding : encodings) {
    trim(encoding, prefix_space);
    for (Encoding& window : encoding.overflowing) trim(window, prefix_space);
  }
}

class ByteLevel : public PostProcessor {
 public:
  explicit ByteLevel(const Object& o) : trim_(o.flag("trim_offsets")), prefix_space_(o.flag("add_prefix_space")) {
    o.flag("use_regex", true);
  }
  size_t added_tokens(bool) const override { return 0; }
  bool trims() const override { return trim_; }
  void apply(std::vector<Encoding>& encodings, bool) const override {
    if (trim_) trim_all(encodings, prefix_space_);
    for (size_t i = 0; i < encodings.size(); ++i) encodings[i].set_sequence(i);
  }

 private:
  bool trim_, prefix_space_;
};

// Special tokens, to stand beside an encoding.
Encoding special(const std::vector<int32_t>& ids, int32_t type, const Encoding& beside) {
  Encoding out;
  out.ids = ids;
  out.set_type(type);
  out.has_offsets = beside.has_offsets;
  out.has_spaces = beside.has_spaces;
  if (out.has_offsets) out.offsets.resize(ids.size());
  if (out.has_spaces) out.spaces.resize(ids.size());
  out.special_mask.assign(ids.size(), 1);
  out.attention_mask.assign(ids.size(), 1);
  return out;
}

// [CLS] A [SEP] B [SEP]; RoBERTa's has two separators between the texts, and no types.
class ClsSep : public PostProcessor {
 public:
  ClsSep(const Object& o, bool roberta)
      : cls_(token(o, "cls")),
        sep_(token(o, "sep")),
        roberta_(roberta),
        trim_(roberta && o.flag("trim_offsets")),
        prefix_space_(roberta && o.flag("add_prefix_space")) {}
  size_t added_tokens(bool pair) const override { return pair ? (roberta_ ? 4 : 3) : 2; }
  bool trims() const override { return trim_; }
  void apply(std::vector<Encoding>& encodings, bool add_special) const override {
    if (trim_) trim_all(encodings, prefix_space_);
    if (roberta_)
      for (Encoding& encoding : encodings) encoding.set_type(0);
    if (!add_special) return;
    for (size_t i = 0; i < encodings.size(); ++i) {
      std::vector<Encoding> windows = std::move(encodings[i].overflowing);
      for (Encoding& window : windows) window = around(window, i);
      encodings[i] = around(encodings[i], i);
      encodings[i].overflowing = std::move(windows);
    }
  }

 private:
  static int32_t token(const Object& o, const char* key) {
    const auto pair = o.array(key);
    std::string_view text;
    if (pair.size() != 2 || pair.at(0).get_string().get(text) != simdjson::SUCCESS)
      throw DataError("{}: \"{}\" is no pair of a token and its id", o.place().name, key);
    return to_id(pair.at(1).value(), o.place(), key);
  }
  Encoding around(const Encoding& encoding, size_t sequence) const {
    Encoding middle;
    middle.ids = encoding.ids;
    middle.type_ids = encoding.type_ids;
    if (roberta_) middle.set_type(0);
    middle.offsets = encoding.offsets;
    middle.special_mask.assign(encoding.size(), 0);
    middle.attention_mask.assign(encoding.size(), 1);
    middle.spaces = encoding.spaces;
    middle.has_offsets = encoding.has_offsets;
    middle.has_spaces = encoding.has_spaces;
    const int32_t type = sequence == 0 || roberta_ ? 0 : 1;
    Encoding out;
    const bool begins = sequence == 0 || roberta_;
    if (begins) out.append(special({sequence == 0 ? cls_ : sep_}, type, encoding));
    middle.set_sequence(sequence == 0 ? 0 : 1);
    out.append(std::move(middle));
    out.append(special({sep_}, type, encoding));
    return out;
  }
  int32_t cls_, sep_;
  bool roberta_, trim_, prefix_space_;
};

class Template : public PostProcessor {
 public:
  Template(std::vector<TemplateToken> single, std::vector<TemplateToken> pair)
      : single_(std::move(single)), pair_(std::move(pair)) {}
  size_t added_tokens(bool pair) const override {
    size_t count = 0;
    for (const TemplateToken& item : pair ? pair_ : single_) count += item.ids.size();
    return count;
  }
  void apply(std::vector<Encoding>& encodings, bool add_special) const override {
    if (encodings.size() > 2) throw UnsupportedError("A template for {} texts is not supported", encodings.size());
    std::vector<Encoding> out;
    const auto& items = encodings.size() == 2 ? pair_ : single_;
    for (const TemplateToken& item : items) {
      if (item.sequence) {
        const size_t i = item.token == "A" ? 0 : 1;
        if (i >= encodings.size()) throw UserError("The tokenizer's template for one text names a second one");
        encodings[i].set_type(item.type);
        encodings[i].set_sequence(i);
        out.push_back(encodings[i]);
      } else if (add_special) {
        if (item.ids.empty())
          throw DataError("The tokenizer's template names \"{}\", which it does not list", item.token);
        out.push_back(special(item.ids, item.type, encodings[0]));
      }
    }
    encodings = std::move(out);
  }

 private:
  std::vector<TemplateToken> single_, pair_;
};

using SpecialTokens = std::map<std::string, std::vector<int32_t>, std::less<>>;

std::vector<TemplateToken> read_items(const Object& o, const char* key, const SpecialTokens& tokens) {
  std::vector<TemplateToken> out;
  for (const Json value : o.array(key)) {
    const Object item(value, o.inside(key));
    TemplateToken token;
    if (item.find("Sequence")) {
      const Object sequence(item.at("Sequence"), item.inside("Sequence"));
      token.token = sequence.text("id");
      token.type = sequence.id("type_id");
      token.sequence = true;
      if (token.token != "A" && token.token != "B")
        throw DataError("{}: the sequence \"{}\" is neither A nor B", item.place().name, token.token);
    } else {
      const Object special_token(item.at("SpecialToken"), item.inside("SpecialToken"));
      token.token = special_token.text("id");
      token.type = special_token.id("type_id");
      if (const auto found = tokens.find(token.token); found != tokens.end()) token.ids = found->second;
    }
    out.push_back(std::move(token));
  }
  return out;
}

std::unique_ptr<PostProcessor> read_template(const Object& o) {
  SpecialTokens tokens;
  const Object list(o.at("special_tokens"), o.inside("special_tokens"));
  for (const auto field : list.fields()) {
    const Object token(field.value, list.inside(field.key));
    token.text("id");
    for (const Json text : token.array("tokens"))
      if (!text.is_string()) throw DataError("{}: a token is no text", token.place().name);
    std::vector<int32_t> ids;
    for (const Json id : token.array("ids")) ids.push_back(to_id(id, token.place(), field.key));
    tokens[std::string(field.key)] = std::move(ids);
  }
  return std::make_unique<Template>(read_items(o, "single", tokens), read_items(o, "pair", tokens));
}

class Sequence : public PostProcessor {
 public:
  explicit Sequence(const Object& o) {
    size_t i = 0;
    for (const Json item : o.array("processors"))
      steps_.push_back(read_post_processor(item, o.inside(fmt::format("processor {}", i++))));
  }
  size_t added_tokens(bool pair) const override {
    size_t count = 0;
    for (const auto& step : steps_) count += step->added_tokens(pair);
    return count;
  }
  bool trims() const override {
    return std::any_of(steps_.begin(), steps_.end(), [](const auto& step) { return step->trims(); });
  }
  void apply(std::vector<Encoding>& encodings, bool add_special) const override {
    for (const auto& step : steps_) step->apply(encodings, add_special);
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> steps_;
};

// Old files leave the type out where the fields tell it.
std::string type_of(const Object& o) {
  if (o.has("type")) return o.text("type");
  if (o.find("cls")) return o.find("trim_offsets") ? "RobertaProcessing" : "BertProcessing";
  if (o.find("single")) return "TemplateProcessing";
  throw DataError("{} has no \"type\"", o.place().name);
}

}  // namespace

std::unique_ptr<PostProcessor> make_template(std::vector<TemplateToken> single, std::vector<TemplateToken> pair) {
  return std::make_unique<Template>(std::move(single), std::move(pair));
}

std::unique_ptr<PostProcessor> read_post_processor(Json value, const Place& place) {
  const Object o(value, place);
  const std::string type = type_of(o);
  if (type == "Sequence") return std::make_unique<Sequence>(o);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(o);
  if (type == "TemplateProcessing") return read_template(o);
  if (type == "BertProcessing") return std::make_unique<ClsSep>(o, false);
  if (type == "RobertaProcessing") return std::make_unique<ClsSep>(o, true);
  throw UnsupportedError("{} of type \"{}\" is not supported", place.name, type);
}

}  // namespace hierarchos::tokenizers
