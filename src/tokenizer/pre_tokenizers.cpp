#include "tokenizer/pre_tokenizers.h"

#include "base/error.h"

namespace hierarchos::tokenizers {
namespace {

using unicode::flags;

enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

Behavior read_behavior(const Object& o) {
  const std::string name = o.text("behavior");
  if (name == "Removed") return Behavior::Removed;
  if (name == "Isolated") return Behavior::Isolated;
  if (name == "MergedWithPrevious") return Behavior::MergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::MergedWithNext;
  if (name == "Contiguous") return Behavior::Contiguous;
  throw UnsupportedError("{}: the behavior \"{}\" is not supported", o.place().name, name);
}

// Joins neighbours. What is left is kept whole.
void join(std::vector<Match>& parts, Behavior behavior) {
  bool previous = false;
  std::vector<Match> out;
  out.reserve(parts.size());
  if (behavior == Behavior::MergedWithNext) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->matched && !previous && !out.empty())
        out.back().begin = part->begin;
      else
        out.push_back(*part);
      previous = part->matched;
    }
    parts.assign(out.rbegin(), out.rend());
    return;
  }
  for (const Match& part : parts) {
    const bool joins = behavior == Behavior::Contiguous ? part.matched == previous : part.matched && !previous;
    if (joins && !out.empty())
      out.back().end = part.end;
    else
      out.push_back(part);
    previous = part.matched;
  }
  parts = std::move(out);
}

// Cuts each piece by `find`, which fills a vector of matches.
template <typename Find>
void cut(std::vector<Piece>& pieces, Scratch& scratch, Behavior behavior, Find find) {
  std::vector<Piece> out;
  out.reserve(pieces.size() + 16);
  for (const Piece& piece : pieces) {
    if (piece.id >= 0) {
      out.push_back(piece);
      continue;
    }
    find(piece.text.text(), scratch.matches);
    if (behavior != Behavior::Removed && behavior != Behavior::Isolated) join(scratch.matches, behavior);
    if (scratch.matches.size() == 1 && scratch.matches[0].begin == 0 &&
        scratch.matches[0].end == piece.text.text().size() &&
        !(behavior == Behavior::Removed && scratch.matches[0].matched)) {
      if (!piece.text.empty()) out.push_back({piece.text.slice(0, piece.text.text().size()), -1});
      continue;
    }
    for (const Match& part : scratch.matches)
      if (part.end > part.begin && !(behavior == Behavior::Removed && part.matched))
        out.push_back({piece.text.slice(part.begin, part.end), -1});
  }
  pieces.swap(out);
}

void drop_empty(std::vector<Piece>& pieces) {
  std::erase_if(pieces, [](const Piece& piece) { return piece.id < 0 && piece.text.empty(); });
}

template <typename Is>
void find_characters(std::string_view text, std::vector<Match>& out, Is is) {
  out.clear();
  if (text.empty()) return out.push_back({0, 0, false});
  size_t done = 0;
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const auto at = static_cast<size_t>(p - text.data());
    if (!is(unicode::next(p))) continue;
    if (done < at) out.push_back({done, at, false});
    done = static_cast<size_t>(p - text.data());
    out.push_back({at, done, true});
  }
  if (done < text.size()) out.push_back({done, text.size(), false});
}

bool has(char32_t c, uint32_t flag) { return (flags(c) & flag) != 0; }
bool is_whitespace(char32_t c) { return has(c, unicode::kWhitespace); }
bool is_punctuation(char32_t c) { return has(c, unicode::kPunctuation); }
bool is_numeric(char32_t c) { return has(c, unicode::kNumeric); }

// Cuts at characters of a kind.
class Characters : public PreTokenizer {
 public:
  Characters(bool (*is)(char32_t), Behavior behavior) : is_(is), behavior_(behavior) {}
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    cut(pieces, scratch, behavior_,
        [&](std::string_view text, std::vector<Match>& out) { find_characters(text, out, is_); });
  }

 private:
  bool (*is_)(char32_t);
  Behavior behavior_;
};

class BertPreTokenizer : public PreTokenizer {
 public:
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    // White space goes, punctuation stands alone: two cuts in one.
    const auto find = [](std::string_view text, std::vector<Match>& out) {
      out.clear();
      size_t done = 0;
      for (const char *p = text.data(), *end = p + text.size(); p < end;) {
        const auto at = static_cast<size_t>(p - text.data());
        const uint32_t f = flags(unicode::next(p));
        if (!(f & (unicode::kWhitespace | unicode::kPunctuation))) continue;
        if (done < at) out.push_back({done, at, false});
        done = static_cast<size_t>(p - text.data());
        if (!(f & unicode::kWhitespace)) out.push_back({at, done, false});
      }
      if (done < text.size()) out.push_back({done, text.size(), false});
    };
    cut(pieces, scratch, Behavior::Removed, find);
  }
};

class Delimiter : public PreTokenizer {
 public:
  explicit Delimiter(char32_t delimiter) : delimiter_(delimiter) {}
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    cut(pieces, scratch, Behavior::Removed, [&](std::string_view text, std::vector<Match>& out) {
      find_characters(text, out, [&](char32_t c) { return c == delimiter_; });
    });
  }

 private:
  char32_t delimiter_;
};

// Words, and runs of what is neither a word nor white space.
class Whitespace : public PreTokenizer {
 public:
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    const auto find = [](std::string_view text, std::vector<Match>& out) {
      out.clear();
      const auto kind = [](char32_t c) {
        const uint32_t f = flags(c);
        return f & unicode::kWord ? 1 : f & unicode::kWhitespace ? 0 : 2;
      };
      size_t begin = 0;
      int before = 0;
      for (const char *p = text.data(), *end = p + text.size(); p < end;) {
        const auto at = static_cast<size_t>(p - text.data());
        const int k = kind(unicode::next(p));
        if (k == before) continue;
        if (before != 0) out.push_back({begin, at, false});
        begin = at;
        before = k;
      }
      if (before != 0) out.push_back({begin, text.size(), false});
    };
    cut(pieces, scratch, Behavior::Removed, find);
  }
};

class Split : public PreTokenizer {
 public:
  explicit Split(const Object& o)
      : pattern_(o.at("pattern"), o.inside("pattern")),
        behavior_(read_behavior(o)),
        invert_(o.flag("invert")),
        splitter_(pattern_.is_literal() ? nullptr : find_splitter(pattern_.text())) {
    // What the splitters find covers the text: with these behaviors all of it is kept, match by match.
    if (!(behavior_ == Behavior::Isolated || (behavior_ == Behavior::Removed && invert_))) splitter_ = nullptr;
  }
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    if (splitter_) return cut(pieces, scratch, Behavior::Isolated, splitter_);
    cut(pieces, scratch, behavior_, [&](std::string_view text, std::vector<Match>& out) {
      pattern_.find_all(text, out);
      if (invert_)
        for (Match& part : out) part.matched = !part.matched;
    });
  }

 private:
  TextPattern pattern_;
  Behavior behavior_;
  bool invert_;
  Splitter splitter_;
};

class ByteLevel : public PreTokenizer {
 public:
  explicit ByteLevel(const Object& o)
      : prefix_space_(o.flag("add_prefix_space")), use_pattern_(o.flag("use_regex", true)) {
    o.flag("trim_offsets");  // the reference asks for it, though this step does not use it
  }
  bool ends_in_letters() const override { return true; }
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool spell) const override {
    if (prefix_space_)
      for (Piece& piece : pieces)
        if (piece.id < 0 && !piece.text.text().starts_with(' ')) piece.text.prepend(" ", scratch.arena);
    static const Splitter kSplitter = find_splitter(kGpt2Pattern);
    if (use_pattern_)
      cut(pieces, scratch, Behavior::Isolated, kSplitter);
    else
      drop_empty(pieces);
    if (!spell) return;
    for (Piece& piece : pieces)
      if (piece.id < 0) ByteAlphabet::spell(piece.text, scratch);
  }

 private:
  bool prefix_space_, use_pattern_;
};

class Metaspace : public PreTokenizer {
 public:
  explicit Metaspace(const Object& o) : options_(o) {}
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    for (Piece& piece : pieces) {
      if (piece.id >= 0) continue;
      if (piece.text.text().find(' ') != std::string_view::npos) {
        Regex::find_all_literal(piece.text.text(), " ", scratch.matches);
        piece.text.replace(scratch.matches, options_.bytes, scratch.arena);
      }
      const bool wanted = options_.scheme == MetaspaceOptions::Always ||
                          (options_.scheme == MetaspaceOptions::First && piece.text.original_begin() == 0);
      if (wanted && !piece.text.text().starts_with(options_.bytes)) piece.text.prepend(options_.bytes, scratch.arena);
    }
    if (!options_.split) return drop_empty(pieces);
    cut(pieces, scratch, Behavior::MergedWithNext,
        [&](std::string_view text, std::vector<Match>& out) { Regex::find_all_literal(text, options_.bytes, out); });
  }

 private:
  MetaspaceOptions options_;
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(const Object& o) : length_(o.find("length") ? o.size("length") : 5), place_(o.place().name) {}
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    if (length_ == 0) throw DataError("{}: pieces of no character", place_);
    cut(pieces, scratch, Behavior::Isolated, [&](std::string_view text, std::vector<Match>& out) {
      out.clear();
      uint64_t count = 0;
      size_t begin = 0;
      for (size_t at = 0; at < text.size(); at += unicode::length_of(text[at])) {
        if (count++ < length_) continue;
        out.push_back({begin, at, false});
        begin = at;
        count = 1;
      }
      if (begin < text.size()) out.push_back({begin, text.size(), false});
    });
  }

 private:
  uint64_t length_;
  std::string place_;
};

class UnicodeScripts : public PreTokenizer {
 public:
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool) const override {
    cut(pieces, scratch, Behavior::Isolated, [](std::string_view text, std::vector<Match>& out) {
      out.clear();
      // A script that is not known joins what it stands by. What stands before the first known one is not kept.
      int last = -1;
      size_t begin = std::string_view::npos;
      for (const char *p = text.data(), *end = p + text.size(); p < end;) {
        const auto at = static_cast<size_t>(p - text.data());
        const int script = unicode::script(unicode::next(p));
        if (script == 0 || script == last) continue;
        if (begin != std::string_view::npos) out.push_back({begin, at, false});
        begin = at;
        last = script;
      }
      if (begin != std::string_view::npos) out.push_back({begin, text.size(), false});
    });
  }
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(const Object& o) {
    size_t i = 0;
    for (const Json item : o.array("pretokenizers"))
      steps_.push_back(read_pre_tokenizer(item, o.inside(fmt::format("pretokenizer {}", i++))));
  }
  bool ends_in_letters() const override { return !steps_.empty() && steps_.back()->ends_in_letters(); }
  void apply(std::vector<Piece>& pieces, Scratch& scratch, bool spell) const override {
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i]->apply(pieces, scratch, spell || i + 1 < steps_.size());
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

std::string type_of(const Object& o) {
  if (o.has("type")) return o.text("type");
  throw DataError("{} has no \"type\"", o.place().name);
}

}  // namespace

MetaspaceOptions::MetaspaceOptions(const Object& o) : replacement(o.character("replacement")) {
  unicode::append(bytes, replacement);
  split = o.flag("split", true);
  if (o.find("prepend_scheme")) {
    const std::string name = o.text("prepend_scheme");
    if (name != "first" && name != "never" && name != "always")
      throw UnsupportedError("{}: the prepend_scheme \"{}\" is not supported", o.place().name, name);
    scheme = name == "first" ? First : name == "never" ? Never : Always;
  }
  if (!o.flag("add_prefix_space", true) && scheme != Never)
    throw DataError("{}: add_prefix_space does not go with the prepend_scheme", o.place().name);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(Json value, const Place& place) {
  const Object o(value, place);
  const std::string type = type_of(o);
  if (type == "Sequence") return std::make_unique<Sequence>(o);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(o);
  if (type == "Split") return std::make_unique<Split>(o);
  if (type == "Metaspace") return std::make_unique<Metaspace>(o);
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return std::make_unique<Characters>(is_whitespace, Behavior::Removed);
  if (type == "BertPreTokenizer") return std::make_unique<BertPreTokenizer>();
  if (type == "CharDelimiterSplit") return std::make_unique<Delimiter>(o.character("delimiter"));
  if (type == "Punctuation")
    return std::make_unique<Characters>(is_punctuation, o.find("behavior") ? read_behavior(o) : Behavior::Isolated);
  if (type == "Digits")
    return std::make_unique<Characters>(is_numeric,
                                        o.flag("individual_digits") ? Behavior::Isolated : Behavior::Contiguous);
  if (type == "UnicodeScripts") return std::make_unique<UnicodeScripts>();
  if (type == "FixedLength") return std::make_unique<FixedLength>(o);
  throw UnsupportedError("{} of type \"{}\" is not supported", place.name, type);
}

}  // namespace hierarchos::tokenizers
