#include "template/wrap.h"

#include <algorithm>

#include "template/error.h"
#include "template/meter.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

using Characters = std::u32string_view;

bool is_blank(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }  // what textwrap takes as white space
bool is_letter(char32_t c) { return unicode::is_word(c) && !unicode::has(c, unicode::kDecimal); }
bool is_punctuation(char32_t c) {
  return unicode::is_word(c) || std::u32string_view(U"!\"'&.,?").find(c) != std::u32string_view::npos;
}

// Cuts a text where a line may end: at white space, behind hyphens in words, around dashes.
class Chunker {
 public:
  Chunker(Characters s, bool on_hyphens) : s_(s), on_hyphens_(on_hyphens) {}

  std::vector<Characters> run() {
    std::vector<Characters> out;
    for (size_t at = 0; at < s_.size();) {
      const size_t end = chunk_end(at);
      out.push_back(s_.substr(at, end - at));
      charge(64);
      at = end;
    }
    return out;
  }

 private:
  bool is(size_t i, bool (*f)(char32_t)) const { return i < s_.size() && f(s_[i]); }
  bool hyphen(size_t i) const { return i < s_.size() && s_[i] == '-'; }

  size_t blanks_end(size_t at) const {
    while (is(at, is_blank)) ++at;
    return at;
  }

  // Two hyphens or more with a word behind them.
  size_t dash_end(size_t at) const {
    size_t end = at;
    while (hyphen(end)) ++end;
    return end - at >= 2 && is(end, unicode::is_word) ? end : at;
  }

  size_t chunk_end(size_t at) const {
    if (is_blank(s_[at])) return blanks_end(at);
    if (!on_hyphens_) {
      while (at < s_.size() && !is_blank(s_[at])) ++at;
      return at;
    }
    if (at > 0 && is_punctuation(s_[at - 1]) && dash_end(at) > at) return dash_end(at);
    // A word: the shortest piece that ends behind a hyphen, before white space or before a dash.
    for (size_t end = at + 1;; ++end) {
      if (splits_at_hyphen(end)) return end + 1;
      if (end == s_.size() || is_blank(s_[end])) return end;
      if (is_punctuation(s_[end - 1]) && dash_end(end) > end) return end;
    }
  }

  // A hyphen at `at`, between letters such as those of "co-op" or "e-mail".
  bool splits_at_hyphen(size_t at) const {
    if (!hyphen(at)) return false;
    const bool two_letters = at >= 2 && is_letter(s_[at - 1]) && is_letter(s_[at - 2]);
    const bool second_hyphen = at >= 3 && is_letter(s_[at - 1]) && s_[at - 2] == '-' && is_letter(s_[at - 3]);
    if (!two_letters && !second_hyphen) return false;
    return is(at + 1, is_letter) && (is(at + 2, is_letter) || (hyphen(at + 2) && is(at + 3, is_letter)));
  }

  Characters s_;
  bool on_hyphens_;
};

bool blank(Characters s) { return std::all_of(s.begin(), s.end(), unicode::is_space); }

}  // namespace

std::vector<std::string> wrap_lines(std::string_view paragraph, int64_t width, bool break_long_words,
                                    bool break_on_hyphens) {
  if (width <= 0) value_error("invalid width {} (must be > 0)", width);
  const auto most = static_cast<size_t>(width);
  const std::u32string characters = text::decode(paragraph);
  std::vector<Characters> chunks = Chunker(characters, break_on_hyphens).run();
  std::reverse(chunks.begin(), chunks.end());
  std::vector<std::string> lines;
  while (!chunks.empty()) {
    std::u32string line;
    if (blank(chunks.back()) && !lines.empty()) chunks.pop_back();
    std::vector<Characters> taken;
    size_t length = 0;
    while (!chunks.empty() && length + chunks.back().size() <= most) {
      length += chunks.back().size();
      taken.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().size() > most) {  // longer than any line
      Characters& word = chunks.back();
      if (break_long_words) {
        size_t end = most - length;
        if (break_on_hyphens && word.size() > end) {
          const size_t hyphen = end == 0 ? Characters::npos : word.rfind(U'-', end - 1);
          const bool between = hyphen != Characters::npos && hyphen > 0 &&
                               std::any_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(hyphen),
                                           [](char32_t c) { return c != '-'; });
          if (between) end = hyphen + 1;
        }
        taken.push_back(word.substr(0, end));
        word.remove_prefix(end);
      } else if (taken.empty()) {
        taken.push_back(std::move(word));
        chunks.pop_back();
      }
    }
    if (!taken.empty() && blank(taken.back())) taken.pop_back();
    if (taken.empty()) continue;
    for (const Characters& chunk : taken) line += chunk;
    lines.push_back(text::encode(line));
  }
  return lines;
}

}  // namespace hierarchos::jinja
