#include "tokenizer/normalizers.h"

#include <algorithm>

#include "base/error.h"

namespace hierarchos::tokenizers {
namespace {

using unicode::flags;

bool all_have(std::string_view text, uint32_t flag) {
  if (unicode::is_ascii(text)) return true;
  for (const char *p = text.data(), *end = p + text.size(); p < end;)
    if (!(flags(unicode::next(p)) & flag)) return false;
  return true;
}

// NFC, NFD, NFKC, NFKD.
class NormalForm : public Normalizer {
 public:
  NormalForm(bool compatible, bool compose) : compatible_(compatible), compose_(compose) {}
  void apply(AlignedText& text, Scratch& scratch) const override {
    const uint32_t flag =
        compose_ ? (compatible_ ? unicode::kNfkc : unicode::kNfc) : (compatible_ ? unicode::kNfkd : unicode::kNfd);
    if (all_have(text.text(), flag)) return;
    unicode::normalize(text.text(), compatible_, compose_, scratch.changes);
    text.transform(scratch.changes, 0, scratch.arena);
  }

 private:
  bool compatible_, compose_;
};

void lowercase(AlignedText& text, Scratch& scratch) {
  // Nearly all characters have one lower case.
  const std::string_view s = text.text();
  if (s.find("\xC4\xB0") == std::string_view::npos) {
    text.filter_map([](char32_t) { return true; },
                    [](char32_t c) {
                      return c < 0x80 ? unicode::to_lower(c).first
                                      : (flags(c) & unicode::kLowercases ? unicode::to_lower(c).first : c);
                    },
                    scratch.arena);
    return;
  }
  scratch.changes.clear();
  for (const char *p = s.data(), *end = p + s.size(); p < end;) {
    const auto [first, second] = unicode::to_lower(unicode::next(p));
    scratch.changes.emplace_back(first, 0);
    if (second) scratch.changes.emplace_back(second, 1);
  }
  text.transform(scratch.changes, 0, scratch.arena);
}

class Lowercase : public Normalizer {
 public:
  void apply(AlignedText& text, Scratch& scratch) const override { lowercase(text, scratch); }
};

char32_t same(char32_t c) { return c; }

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text, Scratch& scratch) const override {
    text.filter_map([](char32_t c) { return c < 0x300 || !(flags(c) & unicode::kMark); }, same, scratch.arena);
  }
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(AlignedText& text, Scratch& scratch) const override {
    if (left_ && right_) return strip(text, true, true, scratch);
    if (left_) strip(text, true, false, scratch);
    if (right_) strip(text, false, true, scratch);
  }

 private:
  static void strip(AlignedText& text, bool left, bool right, Scratch& scratch) {
    const std::string_view s = text.text();
    std::vector<char32_t> characters;
    for (const char *p = s.data(), *end = p + s.size(); p < end;) characters.push_back(unicode::next(p));
    const auto is_space = [](char32_t c) { return (flags(c) & unicode::kWhitespace) != 0; };
    size_t leading = 0, trailing = 0;
    if (left)
      while (leading < characters.size() && is_space(characters[leading])) ++leading;
    if (right)
      while (trailing < characters.size() && is_space(characters[characters.size() - 1 - trailing])) ++trailing;
    if (leading == 0 && trailing == 0) return;
    scratch.changes.clear();
    const size_t stop = characters.size() - trailing;
    for (size_t i = leading; i < stop; ++i)
      // The reference looks for the last character by bytes; elsewhere its count of removed ones is 0.
      scratch.changes.emplace_back(characters[i], i + trailing + 1 == s.size() ? -static_cast<int64_t>(trailing) : 0);
    text.transform(scratch.changes, leading, scratch.arena);
  }
  bool left_, right_;
};

// SentencePiece's rules for machine translation.
class Nmt : public Normalizer {
 public:
  void apply(AlignedText& text, Scratch& scratch) const override {
    const auto keep = [](char32_t c) {
      return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F);
    };
    text.filter_map(keep, same, scratch.arena);
    const auto map = [](char32_t c) -> char32_t {
      const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      return space ? ' ' : c;
    };
    text.filter_map([](char32_t) { return true; }, map, scratch.arena);
  }
};

class Bert : public Normalizer {
 public:
  explicit Bert(const Object& o)
      : clean_(o.flag("clean_text")),
        cjk_(o.flag("handle_chinese_chars")),
        lower_(o.flag("lowercase")),
        accents_(o.flag("strip_accents", lower_)) {}
  void apply(AlignedText& text, Scratch& scratch) const override {
    if (clean_) clean(text, scratch);
    if (cjk_) space_cjk(text, scratch);
    if (accents_) {
      if (!all_have(text.text(), unicode::kNfd)) {
        unicode::normalize(text.text(), false, false, scratch.changes);
        text.transform(scratch.changes, 0, scratch.arena);
      }
      text.filter_map([](char32_t c) { return c < 0x300 || !(flags(c) & unicode::kMarkNonspacing); }, same,
                      scratch.arena);
    }
    if (lower_) lowercase(text, scratch);
  }

 private:
  static void clean(AlignedText& text, Scratch& scratch) {
    const auto keep = [](char32_t c) {
      if (c >= 0x20 && c < 0x7F) return true;
      if (c == '\t' || c == '\n' || c == '\r') return true;
      return c != 0 && c != 0xFFFD && !(flags(c) & unicode::kControl);
    };
    const auto map = [](char32_t c) -> char32_t {
      if (c > 0x20 && c < 0x7F) return c;
      return c == '\t' || c == '\n' || c == '\r' || (flags(c) & unicode::kWhitespace) ? ' ' : c;
    };
    text.filter_map(keep, map, scratch.arena);
  }
  static void space_cjk(AlignedText& text, Scratch& scratch) {
    const std::string_view s = text.text();
    const char* end = s.data() + s.size();
    const auto is_cjk = [](char32_t c) { return c >= 0x3400 && (flags(c) & unicode::kCjk); };
    bool any = false;
    if (!unicode::is_ascii(s))
      for (const char* p = s.data(); p < end && !any;) any = is_cjk(unicode::next(p));
    if (!any) return;
    scratch.changes.clear();
    for (const char* p = s.data(); p < end;) {
      const char32_t c = unicode::next(p);
      if (is_cjk(c)) {
        scratch.changes.emplace_back(' ', 0);
        scratch.changes.emplace_back(c, 1);
        scratch.changes.emplace_back(' ', 1);
      } else {
        scratch.changes.emplace_back(c, 0);
      }
    }
    text.transform(scratch.changes, 0, scratch.arena);
  }
  bool clean_, cjk_, lower_, accents_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  void apply(AlignedText& text, Scratch& scratch) const override { text.prepend(text_, scratch.arena); }

 private:
  std::string text_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(const Object& o) : pattern_(o.at("pattern"), o.inside("pattern")), content_(o.text("content")) {}
  void apply(AlignedText& text, Scratch& scratch) const override {
    pattern_.find_all(text.text(), scratch.matches);
    text.replace(scratch.matches, content_, scratch.arena);
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const Object& o)
      : map_(decode_base64(o.text("precompiled_charsmap"), o.place().name), o.place().name) {
    for (char c = 0; c >= 0; ++c) {
      changes_ascii_ |= map_.shortest({&c, 1}).length != 0;
      if (c == 0x7F) break;
    }
    changes_ascii_ |= map_.shortest("\r\n").length != 0;
  }
  // Grapheme by grapheme where one is short, else character by character, as the reference does.
  void apply(AlignedText& text, Scratch& scratch) const override {
    const std::string_view s = text.text();
    if (!changes_ascii_ && unicode::is_ascii(s)) return;
    unicode::grapheme_ends(s, scratch.ends);
    scratch.changes.clear();
    bool modified = false;
    const auto put = [&](std::string_view before, std::string_view after) {
      modified = true;
      add(scratch.changes, before, after);
    };
    size_t begin = 0;
    for (const size_t end : scratch.ends) {
      const std::string_view grapheme = s.substr(begin, end - begin);
      begin = end;
      if (grapheme.size() < 6) {
        if (const auto found = map_.shortest(grapheme); found.length) {
          put(grapheme, found.replacement);
          continue;
        }
      }
      for (size_t i = 0; i < grapheme.size();) {
        const std::string_view part = grapheme.substr(i, unicode::length_of(grapheme[i]));
        if (const auto found = map_.shortest(part); found.length) {
          put(part, found.replacement);
        } else {
          const char* p = part.data();
          scratch.changes.emplace_back(unicode::next(p), 0);
        }
        i += part.size();
      }
    }
    if (modified) text.transform(scratch.changes, 0, scratch.arena);
  }

 private:
  static void add(std::vector<unicode::Change>& changes, std::string_view before, std::string_view after) {
    const auto old_count = static_cast<int64_t>(unicode::count(before));
    const auto new_count = static_cast<int64_t>(unicode::count(after));
    for (const char *p = after.data(), *end = p + after.size(); p < end;) changes.emplace_back(unicode::next(p), 0);
    const int64_t more = new_count - old_count;
    for (int64_t i = 0; i < more; ++i) changes[changes.size() - 1 - static_cast<size_t>(i)].second = 1;
    if (more < 0 && !changes.empty()) changes.back().second += more;
  }
  CharacterMap map_;
  bool changes_ascii_ = false;
};

class Letters : public Normalizer {
 public:
  void apply(AlignedText& text, Scratch& scratch) const override { ByteAlphabet::spell(text, scratch); }
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(const Object& o) {
    size_t i = 0;
    for (const Json item : o.array("normalizers"))
      steps_.push_back(read_normalizer(item, o.inside(fmt::format("normalizer {}", i++))));
  }
  void apply(AlignedText& text, Scratch& scratch) const override {
    for (const auto& step : steps_) step->apply(text, scratch);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

// Old files leave the type out where the fields tell it.
std::string type_of(const Object& o) {
  if (o.has("type")) return o.text("type");
  if (o.find("clean_text")) return "BertNormalizer";
  if (o.find("strip_left")) return "Strip";
  if (o.find("normalizers")) return "Sequence";
  if (o.find("precompiled_charsmap")) return "Precompiled";
  if (o.find("pattern")) return "Replace";
  if (o.find("prepend")) return "Prepend";
  throw DataError("{} has no \"type\"", o.place().name);
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(Json value, const Place& place) {
  const Object o(value, place);
  const std::string type = type_of(o);
  if (type == "Sequence") return std::make_unique<Sequence>(o);
  if (type == "NFC") return std::make_unique<NormalForm>(false, true);
  if (type == "NFD") return std::make_unique<NormalForm>(false, false);
  if (type == "NFKC") return std::make_unique<NormalForm>(true, true);
  if (type == "NFKD") return std::make_unique<NormalForm>(true, false);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Strip") return std::make_unique<Strip>(o.flag("strip_left"), o.flag("strip_right"));
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "BertNormalizer" || type == "Bert") return std::make_unique<Bert>(o);
  if (type == "Prepend") return std::make_unique<Prepend>(o.text("prepend"));
  if (type == "Replace") return std::make_unique<Replace>(o);
  if (type == "Precompiled") return std::make_unique<Precompiled>(o);
  if (type == "ByteLevel") return std::make_unique<Letters>();
  throw UnsupportedError("{} of type \"{}\" is not supported", place.name, type);
}

TextPattern::TextPattern(Json value, const Place& place) {
  const Object o(value, place);
  if (o.find("Regex")) {
    text_ = o.text("Regex");
    regex_ = std::make_shared<const Regex>(text_, place.name);
  } else if (o.find("String")) {
    text_ = o.text("String");
    if (text_.empty()) regex_ = std::make_shared<const Regex>("", place.name);  // matches between all characters
  } else {
    throw DataError("{} is neither a \"String\" nor a \"Regex\"", place.name);
  }
}

void TextPattern::find_all(std::string_view text, std::vector<Match>& out) const {
  if (regex_)
    regex_->find_all(text, out);
  else
    Regex::find_all_literal(text, text_, out);
}

}  // namespace hierarchos::tokenizers
