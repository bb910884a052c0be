// Texts of HTML: characters by name, links.
#include <algorithm>
#include <array>
#include <iterator>

#include "template/filters.h"
#include "template/meter.h"
#include "template/print.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

struct Entity {
  std::string_view name;  // with its semicolon, where it needs one
  const char* text;
};
constexpr Entity kEntities[] = {
#include "template/html_entities.inc"
};

const Entity* find_entity(std::string_view name) {
  const auto* at = std::lower_bound(std::begin(kEntities), std::end(kEntities), name,
                                    [](const Entity& e, std::string_view n) { return e.name < n; });
  return at != std::end(kEntities) && at->name == name ? at : nullptr;
}

// What a number stands for: HTML takes those of Windows-1252 for what they were meant to be.
std::string by_number(uint64_t n) {
  static constexpr std::array<uint16_t, 32> kWindows = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                                        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                                        0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                                        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};
  std::string out;
  if (n == 0 || (n >= 0xD800 && n <= 0xDFFF) || n > 0x10FFFF)
    n = 0xFFFD;
  else if (n >= 0x80 && n <= 0x9F)
    n = kWindows[n - 0x80];
  else if (n != 0x0D && (n == 0x0B || (n >= 1 && n <= 8) || (n >= 0x0E && n <= 0x1F) || n == 0x7F ||
                         (n >= 0xFDD0 && n <= 0xFDEF) || (n & 0xFFFE) == 0xFFFE))
    return out;
  text::append(out, static_cast<char32_t>(n));
  return out;
}

// A reference by number behind "&#"; how many bytes it has, 0 where it is none.
size_t number_reference(std::string_view s, std::string& out) {
  const bool hexadecimal = !s.empty() && (s[0] == 'x' || s[0] == 'X');
  size_t at = hexadecimal ? 1 : 0;
  const size_t begin = at;
  uint64_t n = 0;
  for (; at < s.size(); ++at) {
    const char c = s[at];
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (hexadecimal && ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')) digit = (c | 0x20) - 'a' + 10;
    if (digit < 0) break;
    n = std::min<uint64_t>(n * (hexadecimal ? 16 : 10) + static_cast<uint64_t>(digit), 0x110000);
  }
  if (at == begin) return 0;
  if (at < s.size() && s[at] == ';') ++at;
  out += by_number(n);
  return at;
}

// A reference by name behind "&": the longest that the text begins with. How many bytes it has, 0 where it is none.
size_t name_reference(std::string_view s, std::string& out) {
  size_t end = 0;
  for (size_t characters = 0; end < s.size() && characters < 32; ++characters) {
    if (std::string_view("\t\n\f <&#;").find(s[end]) != std::string_view::npos) break;
    text::next(s, end);
  }
  if (end == 0) return 0;
  if (end < s.size() && s[end] == ';') ++end;
  if (const Entity* entity = find_entity(s.substr(0, end))) {
    out += entity->text;
    return end;
  }
  for (size_t shorter = end - 1; shorter > 1; --shorter)
    if (const Entity* entity = find_entity(s.substr(0, shorter))) {
      out += entity->text;
      return shorter;
    }
  return 0;
}

}  // namespace

std::string unescape_html(std::string_view s) {
  charge(s.size() * 16);
  std::string out;
  for (size_t at = 0; at < s.size();) {
    if (s[at] == '&' && at + 1 < s.size()) {
      const bool number = s[at + 1] == '#';
      const size_t begin = at + (number ? 2 : 1);
      const size_t length = number ? number_reference(s.substr(begin), out) : name_reference(s.substr(begin), out);
      if (length > 0) {
        at = begin + length;
        continue;
      }
    }
    out += s[at++];
  }
  return out;
}

}  // namespace hierarchos::jinja
