#include "template/text.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "template/meter.h"
#include "template/unicode.h"

namespace hierarchos::jinja::text {
namespace {

// Greek's sigma has a form of its own at the end of a word.
bool ends_word(std::u32string_view s, size_t i) {
  size_t j = i;
  while (j > 0 && unicode::has(s[j - 1], unicode::kCaseIgnorable)) --j;
  if (j == 0 || !unicode::has(s[j - 1], unicode::kCased)) return false;
  for (j = i + 1; j < s.size() && unicode::has(s[j], unicode::kCaseIgnorable);) ++j;
  return j == s.size() || !unicode::has(s[j], unicode::kCased);
}

std::u32string lower_at(std::u32string_view s, size_t i) {
  if (s[i] == 0x3A3) return {ends_word(s, i) ? U'\u03C2' : U'\u03C3'};
  return unicode::lower(s[i]);
}

char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The byte where the character before byte `at` begins.
size_t previous(std::string_view s, size_t at) {
  do --at;
  while (at > 0 && is_continuation(s[at]));
  return at;
}

template <typename Strips>
std::string_view strip_where(std::string_view s, bool left, bool right, Strips strips) {
  const size_t whole = s.size();
  while (left && !s.empty()) {
    size_t at = 0;
    if (!strips(next(s, at))) break;
    s.remove_prefix(at);
  }
  while (right && !s.empty()) {
    const size_t begin = previous(s, s.size());
    size_t at = begin;
    if (!strips(next(s, at))) break;
    s = s.substr(0, begin);
  }
  charge((whole - s.size()) * 4);
  return s;
}

bool breaks_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

char32_t next(std::string_view s, size_t& at) {
  const auto byte = [&](size_t i) -> char32_t { return static_cast<unsigned char>(s[i]); };
  const char32_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t c = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) c = c << 6 | (byte(at + i) & 0x3F);
  at += length;
  return c;
}

void append(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  out += static_cast<char>(((0xF00u >> length) & 0xFF) | (c >> (6 * (length - 1))));
  for (int i = length - 2; i >= 0; --i) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
}

std::u32string decode(std::string_view s) {
  charge(s.size() * 16);  // with what is done with the characters
  std::u32string out;
  out.reserve(s.size());
  for (size_t at = 0; at < s.size();) out += next(s, at);
  return out;
}

std::string encode(std::u32string_view s) {
  std::string out;
  for (const char32_t c : s) append(out, c);
  return out;
}

size_t length(std::string_view s) {
  return s.size() - static_cast<size_t>(std::count_if(s.begin(), s.end(), is_continuation));
}

bool valid(std::string_view s, bool surrogates) {
  while (!s.empty()) {
    const Utf8Unit unit = next_utf8(s);
    size_t bytes = unit.length;
    if (unit.kind != Utf8Unit::Valid) {
      const bool surrogate = s.size() >= 3 && s[0] == '\xED' && static_cast<unsigned char>(s[1]) >= 0xA0 &&
                             is_continuation(s[1]) && is_continuation(s[2]);
      if (!surrogates || !surrogate) return false;
      bytes = 3;
    }
    s.remove_prefix(bytes);
  }
  return true;
}

namespace {

// Does `what` stand at byte `at`? Counts the bytes that were looked at.
bool stands_at(std::string_view s, std::string_view what, size_t at, size_t& looked) {
  size_t k = 0;
  while (k < what.size() && s[at + k] == what[k]) ++k;
  looked += k;
  if (looked > 65536) charge(std::exchange(looked, 0));
  return k == what.size();
}

}  // namespace

size_t find(std::string_view s, std::string_view what, size_t from) {
  if (what.empty()) return from;
  size_t looked = 0;
  size_t at = from;
  for (; at + what.size() <= s.size(); ++at) {
    at = s.find(what[0], at);
    if (at == std::string_view::npos || at + what.size() > s.size()) break;
    if (stands_at(s, what, at, looked)) {
      charge(looked + at - from);
      return at;
    }
  }
  charge(looked + s.size() - from);
  return std::string_view::npos;
}

size_t find_last(std::string_view s, std::string_view what) {
  size_t looked = 0;
  for (size_t end = s.size(); end >= what.size();) {
    const size_t at = what.empty() ? end : s.substr(0, end - what.size() + 1).rfind(what[0]);
    if (at == std::string_view::npos) break;
    if (stands_at(s, what, at, looked)) {
      charge(looked + s.size() - at);
      return at;
    }
    end = at + what.size() - 1;
  }
  charge(looked + s.size());
  return std::string_view::npos;
}

size_t byte_of(std::string_view s, size_t index) {
  charge(std::min(index, s.size()));
  size_t at = 0;
  for (; index > 0 && at < s.size(); --index) {
    ++at;
    while (at < s.size() && is_continuation(s[at])) ++at;
  }
  return at;
}

size_t index_of_byte(std::string_view s, size_t byte) {
  charge(byte);
  return length(s.substr(0, byte));
}

bool is_ascii(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string upper(std::string_view s) {
  std::string out;
  if (is_ascii(s)) {
    out.resize(s.size());
    std::transform(s.begin(), s.end(), out.begin(), ascii_upper);
    return out;
  }
  charge(s.size() * 16);
  for (size_t at = 0; at < s.size();) out += encode(unicode::upper(next(s, at)));
  return out;
}

std::string lower(std::string_view s) {
  std::string out;
  if (is_ascii(s)) {
    out.resize(s.size());
    std::transform(s.begin(), s.end(), out.begin(), ascii_lower);
    return out;
  }
  const std::u32string characters = decode(s);
  for (size_t i = 0; i < characters.size(); ++i) out += encode(lower_at(characters, i));
  return out;
}

std::string title(std::string_view s) {
  const std::u32string characters = decode(s);
  std::string out;
  bool in_word = false;
  for (size_t i = 0; i < characters.size(); ++i) {
    out += encode(in_word ? lower_at(characters, i) : unicode::title(characters[i]));
    in_word = unicode::has(characters[i], unicode::kCased | unicode::kUpper | unicode::kLower | unicode::kTitle);
  }
  return out;
}

std::string capitalize(std::string_view s) {
  const std::u32string characters = decode(s);
  std::string out;
  for (size_t i = 0; i < characters.size(); ++i)
    out += encode(i == 0 ? unicode::title(characters[0]) : lower_at(characters, i));
  return out;
}

std::string swapcase(std::string_view s) {
  const std::u32string characters = decode(s);
  std::string out;
  for (size_t i = 0; i < characters.size(); ++i) {
    const uint32_t flags = unicode::flags(characters[i]);
    if ((flags & unicode::kUpper) != 0)
      out += encode(lower_at(characters, i));
    else if ((flags & unicode::kLower) != 0)
      out += encode(unicode::upper(characters[i]));
    else
      append(out, characters[i]);
  }
  return out;
}

std::string casefold(std::string_view s) {
  std::string out;
  charge(s.size() * 16);
  for (size_t at = 0; at < s.size();) out += encode(unicode::fold(next(s, at)));
  return out;
}

std::string_view strip(std::string_view s, bool left, bool right) {
  return strip_where(s, left, right, unicode::is_space);
}

std::string_view strip(std::string_view s, bool left, bool right, std::string_view characters) {
  std::u32string set = decode(characters);
  std::sort(set.begin(), set.end());
  return strip_where(s, left, right, [&](char32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

std::vector<std::string> split_space(std::string_view s, int64_t maximum, bool from_right) {
  charge(s.size() * 4);
  std::vector<std::string> out;
  while (true) {
    s = strip(s, !from_right, from_right);
    if (s.empty()) break;
    if (maximum >= 0 && static_cast<int64_t>(out.size()) == maximum) {
      out.emplace_back(s);  // with the white space of its other end
      break;
    }
    size_t end = from_right ? s.size() : 0;
    while (from_right ? end > 0 : end < s.size()) {
      const size_t begin = from_right ? previous(s, end) : end;
      size_t behind = begin;
      if (unicode::is_space(next(s, behind))) break;
      end = from_right ? begin : behind;
    }
    out.emplace_back(from_right ? s.substr(end) : s.substr(0, end));
    s = from_right ? s.substr(0, end) : s.substr(end);
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split(std::string_view s, std::string_view separator, int64_t maximum, bool from_right) {
  std::vector<std::string> out;
  while (maximum < 0 || static_cast<int64_t>(out.size()) < maximum) {
    const size_t at = from_right ? find_last(s, separator) : find(s, separator);
    if (at == std::string_view::npos) break;
    out.emplace_back(from_right ? s.substr(at + separator.size()) : s.substr(0, at));
    s = from_right ? s.substr(0, at) : s.substr(at + separator.size());
  }
  out.emplace_back(s);
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> splitlines(std::string_view s, bool keep_ends) {
  charge(s.size() * 4);
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t at = 0; at < s.size();) {
    const size_t end = at;
    const char32_t c = next(s, at);
    if (!breaks_line(c)) continue;
    if (c == '\r' && at < s.size() && s[at] == '\n') ++at;
    out.emplace_back(s.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < s.size()) out.emplace_back(s.substr(begin));
  return out;
}

std::string replace(std::string_view s, std::string_view from, std::string_view to, int64_t maximum) {
  std::string out;
  size_t done = 0;  // bytes of s
  for (int64_t count = 0; maximum < 0 || count < maximum; ++count) {
    if (from.empty()) {  // before each character, and at the end
      if (count > 0) {
        if (done == s.size()) break;
        const size_t begin = done;
        next(s, done);
        out += s.substr(begin, done - begin);
      }
    } else {
      const size_t at = find(s, from, done);
      if (at == std::string_view::npos) break;
      out += s.substr(done, at - done);
      done = at + from.size();
    }
    out += to;
    charge(to.size());
    if (count % 16 == 0) charge(256);
    check_text_size(out.size());
  }
  out += s.substr(done);
  return out;
}

std::string expand_tabs(std::string_view s, int64_t size) {
  std::string out;
  int64_t column = 0;
  for (size_t at = 0; at < s.size();) {
    const size_t begin = at;
    const char32_t c = next(s, at);
    if (c == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      check_text_size(out.size() + static_cast<size_t>(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
      continue;
    }
    column = c == '\n' || c == '\r' ? 0 : column + 1;
    out += s.substr(begin, at - begin);
  }
  return out;
}

std::string slice(std::string_view s, int64_t begin, int64_t step, int64_t count, bool ascii) {
  std::string out;
  if (ascii) {
    for (int64_t i = 0; i < count; ++i) out += s[static_cast<size_t>(begin + i * step)];
  } else if (step == 1) {
    const size_t from = byte_of(s, static_cast<size_t>(begin));
    out = s.substr(from, byte_of(s.substr(from), static_cast<size_t>(count)));
  } else {
    const std::u32string characters = decode(s);
    for (int64_t i = 0; i < count; ++i) append(out, characters[static_cast<size_t>(begin + i * step)]);
  }
  return out;
}

bool all(std::string_view s, uint32_t flags) {
  charge(s.size() * 4);
  for (size_t at = 0; at < s.size();)
    if (!unicode::has(next(s, at), flags)) return false;
  return !s.empty();
}

bool is_cased_as(std::string_view s, uint32_t wanted) {
  charge(s.size() * 4);
  bool cased = false;
  for (size_t at = 0; at < s.size();) {
    const uint32_t flags = unicode::flags(next(s, at)) & (unicode::kUpper | unicode::kLower | unicode::kTitle);
    if ((flags & ~wanted) != 0) return false;
    cased = cased || flags != 0;
  }
  return cased;
}

bool is_title(std::string_view s) {
  charge(s.size() * 4);
  bool any = false, previous_cased = false;
  for (size_t at = 0; at < s.size();) {
    const uint32_t flags = unicode::flags(next(s, at));
    if ((flags & (unicode::kUpper | unicode::kTitle)) != 0) {
      if (previous_cased) return false;
      any = previous_cased = true;
    } else if ((flags & unicode::kLower) != 0) {
      if (!previous_cased) return false;
      any = previous_cased = true;
    } else {
      previous_cased = false;
    }
  }
  return any;
}

bool is_identifier(std::string_view s) {
  charge(s.size() * 4);
  for (size_t at = 0; at < s.size();) {
    const bool first = at == 0;
    if (!unicode::has(next(s, at), first ? unicode::kIdentifierStart : unicode::kIdentifierPart)) return false;
  }
  return !s.empty();
}

}  // namespace hierarchos::jinja::text
