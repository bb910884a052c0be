// The patterns of GPT-2, Llama 3, Qwen 2 and GPT-4o without a regular-expression engine. Each function does what
// Oniguruma would, alternative by alternative; a test compares the two on random texts.
#include <array>

#include "tokenizer/pre_tokenizers.h"

namespace hierarchos::tokenizers {
namespace {

using unicode::flags;
using unicode::kLetter;
using unicode::kNumber;
using unicode::kSpace;

// A place in a text, with the class of the character there; flags are 0 at the end.
class Cursor {
 public:
  Cursor(const char* p, const char* end) : p_(p), end_(end) { look(); }
  const char* place() const { return p_; }
  bool at_end() const { return p_ == end_; }
  uint32_t is(uint32_t mask) const { return flags_ & mask; }
  char32_t character() const { return c_; }
  bool newline() const { return !at_end() && (c_ == '\n' || c_ == '\r'); }
  // Neither white space nor letter nor number.
  bool other() const { return !at_end() && !(flags_ & (kLetter | kNumber | kSpace)); }
  void move() {
    p_ = next_;
    look();
  }
  void skip(uint32_t mask) {
    while (flags_ & mask) move();
  }

 private:
  void look() {
    if (p_ == end_) {
      flags_ = 0, c_ = 0;
      return;
    }
    next_ = p_;
    c_ = unicode::next(next_);
    flags_ = flags(c_);
  }
  const char *p_, *end_;
  const char* next_ = nullptr;
  char32_t c_ = 0;
  uint32_t flags_ = 0;
};

// 's 't 're 've 'm 'll 'd. Without case, the long s is an s.
const char* contraction(const char* p, const char* end, bool any_case) {
  if (p == end || *p != '\'') return nullptr;
  const auto at = [&](int i) -> char32_t {
    if (end - p <= i) return 0;
    const char c = p[i];
    return static_cast<uint8_t>(any_case && c >= 'A' && c <= 'Z' ? c + 32 : c);
  };
  const char32_t a = at(1), b = at(2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return p + 3;
  if (any_case && a == 0xC5 && b == 0xBF) return p + 3;  // U+017F
  return nullptr;
}

// \s+(?!\S)|\s+ : white space but for its last character, if a word follows.
const char* spaces(Cursor at) {
  const char *last = at.place(), *begin = last;
  for (; at.is(kSpace); at.move()) last = at.place();
  return at.at_end() || last == begin ? at.place() : last;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last line end of a run of white space, if there is one.
const char* spaces_and_lines(Cursor at) {
  const Cursor begin = at;
  const char* line = nullptr;
  for (; at.is(kSpace); at.move())
    if (at.newline()) line = at.place() + 1;
  return line ? line : spaces(begin);
}

const char* gpt2(const char* p, const char* end) {
  if (const char* stop = contraction(p, end, false)) return stop;
  Cursor at(p, end);
  if (at.character() == ' ') {
    Cursor word = at;
    word.move();
    if (word.is(kLetter | kNumber) || word.other()) at = word;
  }
  if (at.is(kLetter)) {
    at.skip(kLetter);
  } else if (at.is(kNumber)) {
    at.skip(kNumber);
  } else if (at.other()) {
    while (at.other()) at.move();
  } else {
    return spaces(at);
  }
  return at.place();
}

//  ?[^\s\p{L}\p{N}]+[\r\n]* with a slash too, if asked; null: no match.
const char* others(Cursor at, bool slash) {
  if (at.character() == ' ') at.move();
  if (!at.other()) return nullptr;
  while (at.other()) at.move();
  while (at.newline() || (slash && at.character() == '/')) at.move();
  return at.place();
}

template <int MostDigits>
const char* llama3(const char* p, const char* end) {
  if (const char* stop = contraction(p, end, true)) return stop;
  Cursor at(p, end);
  if (at.is(kLetter)) return at.skip(kLetter), at.place();
  if (at.is(kNumber)) {
    for (int i = 0; i < MostDigits && at.is(kNumber); ++i) at.move();
    return at.place();
  }
  if (!at.newline()) {
    Cursor word = at;
    word.move();
    if (word.is(kLetter)) return word.skip(kLetter), word.place();
  }
  if (const char* stop = others(at, false)) return stop;
  return spaces_and_lines(at);
}

constexpr uint32_t kUpperLike =
    unicode::kUpper | unicode::kTitle | unicode::kModifierLetter | unicode::kOtherLetter | unicode::kMarkClass;
constexpr uint32_t kLowerLike =
    unicode::kLower | unicode::kModifierLetter | unicode::kOtherLetter | unicode::kMarkClass;

// [upper-like]*[lower-like]+; null: no match.
const char* lower_word(Cursor at) {
  const char* after_last_lower = nullptr;  // within the run of upper-like ones, past the last that is lower-like too
  while (at.is(kUpperLike)) {
    const bool lower = at.is(kLowerLike);
    at.move();
    if (lower) after_last_lower = at.place();
  }
  if (!at.is(kLowerLike)) return after_last_lower;
  at.skip(kLowerLike);
  return at.place();
}

// [upper-like]+[lower-like]*; null: no match.
const char* upper_word(Cursor at) {
  if (!at.is(kUpperLike)) return nullptr;
  at.skip(kUpperLike);
  at.skip(kLowerLike);
  return at.place();
}

const char* o200k(const char* p, const char* end) {
  const Cursor at(p, end);
  Cursor word = at;
  const bool prefix = !at.newline() && !at.is(kLetter | kNumber);
  if (prefix) word.move();
  const char* stop = lower_word(word);
  if (!stop && prefix) stop = lower_word(at);
  if (!stop) stop = upper_word(word);
  if (!stop && prefix) stop = upper_word(at);
  if (stop) {
    const char* more = contraction(stop, end, true);
    return more ? more : stop;
  }
  if (at.is(kNumber)) {
    Cursor number = at;
    for (int i = 0; i < 3 && number.is(kNumber); ++i) number.move();
    return number.place();
  }
  if (const char* other = others(at, true)) return other;
  return spaces_and_lines(at);
}

template <const char* (*Next)(const char*, const char*)>
void split(std::string_view text, std::vector<Match>& out) {
  out.clear();
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* stop = Next(p, end);
    out.push_back({static_cast<size_t>(p - text.data()), static_cast<size_t>(stop - text.data()), true});
    p = stop;
  }
}

}  // namespace

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Splitter find_splitter(std::string_view pattern) {
  struct Known {
    std::string_view pattern;
    Splitter splitter;
  };
  static const std::array<Known, 4> kKnown = {{
      {kGpt2Pattern, split<gpt2>},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       split<llama3<3>>},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       split<llama3<1>>},
      {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
       R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       split<o200k>},
  }};
  for (const Known& known : kKnown)
    if (known.pattern == pattern) return known.splitter;
  return nullptr;
}

}  // namespace hierarchos::tokenizers
