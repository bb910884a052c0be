// The filter urlize: links in a text, found by Jinja2's own rules.
#include <oniguruma.h>

#include <array>
#include <memory>

#include "template/filters.h"
#include "template/print.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

class Pattern {
 public:
  explicit Pattern(std::string_view pattern) {
    static const bool ready = [] {
      OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
      return onig_initialize(encodings, 1) == ONIG_NORMAL;
    }();
    const auto* begin = reinterpret_cast<const OnigUChar*>(pattern.data());
    OnigErrorInfo info;
    regex_t* compiled = nullptr;
    if (!ready || onig_new(&compiled, begin, begin + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                           ONIG_SYNTAX_PERL_NG, &info) != ONIG_NORMAL)
      throw Error("Oniguruma refuses a pattern of the filter urlize");
    regex_.reset(compiled);
  }

  bool matches(std::string_view s) const {
    const auto* begin = reinterpret_cast<const OnigUChar*>(s.data());
    return onig_match(regex_.get(), begin, begin + s.size(), begin, nullptr, ONIG_OPTION_NONE) ==
           static_cast<int>(s.size());
  }

 private:
  struct Free {
    void operator()(regex_t* r) const { onig_free(r); }
  };
  std::unique_ptr<regex_t, Free> regex_;
};

const Pattern& web_address() {
  static const Pattern pattern(
      R"((?i)(?:(?:https?://|www\.)(?:(?:[\w%-]+\.)+)?(?:[a-z]{2,63}|xn--[\w%]{2,59}))"
      R"(|(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil))"
      R"(|https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\]))"
      R"()(?::\d{1,5})?(?:[/?#]\S*)?\z)");
  return pattern;
}

const Pattern& mail_address() {
  static const Pattern pattern(R"(\S+@\w[\w.-]*\.\w+\z)");
  return pattern;
}

const Pattern& scheme_prefix() {
  static const Pattern pattern(R"([\w.+-]{2,}:/{0,2}\z)");
  return pattern;
}

bool starts_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }
bool ends_with(std::string_view s, std::string_view suffix) {
  return s.size() >= suffix.size() && s.substr(s.size() - suffix.size()) == suffix;
}

int64_t count(std::string_view s, std::string_view what) {
  int64_t n = 0;
  for (size_t at = s.find(what); at != std::string_view::npos; at = s.find(what, at + what.size())) ++n;
  return n;
}

// A word without the brackets and punctuation around it.
struct Parts {
  std::string head, middle, tail;
};

Parts cut(std::string_view word) {
  static constexpr std::array<std::string_view, 3> kHeads = {"(", "<", "&lt;"};
  static constexpr std::array<std::string_view, 6> kTails = {")", ">", ".", ",", "\n", "&gt;"};
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPairs = {
      {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}}};
  Parts parts;
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view head : kHeads)
      if (starts_with(word, head)) {
        parts.head += head;
        word.remove_prefix(head.size());
        more = true;
      }
  }
  size_t end = word.size();
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view tail : kTails)
      if (ends_with(word.substr(0, end), tail)) {
        end -= tail.size();
        more = true;
      }
  }
  parts.tail = word.substr(end);
  parts.middle = word.substr(0, end);
  // A bracket that opens inside takes back what closes it.
  size_t taken = 0;  // bytes of the tail
  for (const auto& [open, close] : kPairs) {
    const int64_t opened = count(parts.middle, open);
    if (opened <= count(parts.middle, close)) continue;
    for (int64_t i = std::min(opened, count(std::string_view(parts.tail).substr(taken), close)); i > 0; --i) {
      const size_t to = parts.tail.find(close, taken) + close.size();
      parts.middle.append(parts.tail, taken, to - taken);
      taken = to;
    }
  }
  parts.tail.erase(0, taken);
  return parts;
}

}  // namespace

std::string urlize(const std::string& escaped, std::optional<int64_t> limit, const std::string& rel,
                   const std::string& target, const std::vector<std::string>& schemes) {
  for (const std::string& scheme : schemes)
    if (!scheme_prefix().matches(scheme))
      fail("FilterArgumentError", "{} is not a valid URI scheme prefix.", text_repr(scheme));
  const std::string attributes = (rel.empty() ? "" : " rel=\"" + escape_html(rel) + "\"") +
                                 (target.empty() ? "" : " target=\"" + escape_html(target) + "\"");
  const auto trimmed = [&](const std::string& url) {
    if (!limit || static_cast<int64_t>(text::length(url)) <= *limit) return url;
    return text::slice(url, 0, 1, std::max<int64_t>(0, *limit), text::is_ascii(url)) + "...";
  };
  const auto link = [&](const std::string& word) -> std::string {
    if (web_address().matches(word)) {
      const bool whole = starts_with(word, "https://") || starts_with(word, "http://");
      return fmt::format("<a href=\"{}{}\"{}>{}</a>", whole ? "" : "https://", word, attributes, trimmed(word));
    }
    if (starts_with(word, "mailto:") && mail_address().matches(word.substr(7)))
      return fmt::format("<a href=\"{}\">{}</a>", word, word.substr(7));
    const bool at = word.find('@') != std::string::npos && word[0] != '@' && !starts_with(word, "www.");
    if (at && word.find(':') == std::string::npos && mail_address().matches(word))
      return fmt::format("<a href=\"mailto:{0}\">{0}</a>", word);
    std::string out = word;
    for (const std::string& scheme : schemes)
      if (out != scheme && starts_with(out, scheme)) out = fmt::format("<a href=\"{0}\"{1}>{0}</a>", out, attributes);
    return out;
  };
  std::string out;
  for (size_t at = 0; at < escaped.size();) {
    const size_t begin = at;
    size_t end = at;
    while (at < escaped.size() && !unicode::is_space(text::next(escaped, at))) end = at;
    const size_t length = end - begin;
    charge(4096 + length * 16 + length * length / 64);  // the patterns may go back and forth in a word
    const Parts parts = cut(std::string_view(escaped).substr(begin, length));
    out += parts.head + link(parts.middle) + parts.tail;
    for (at = end; at < escaped.size() && unicode::is_space(text::next(escaped, at));) end = at;
    out += escaped.substr(begin + parts.head.size() + parts.middle.size() + parts.tail.size(),
                          end - (begin + parts.head.size() + parts.middle.size() + parts.tail.size()));
    at = end;
    check_text_size(out.size());
  }
  return out;
}

}  // namespace hierarchos::jinja
