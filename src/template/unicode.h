// Characters as Python's str sees them: classes and case mappings. The version of Unicode is in unicode_tables.inc.
#pragma once

#include <cstdint>
#include <string>

namespace hierarchos::jinja::unicode {

enum Flag : uint32_t {
  kAlpha = 1 << 0,
  kDecimal = 1 << 1,
  kDigit = 1 << 2,
  kNumeric = 1 << 3,
  kSpace = 1 << 4,
  kPrintable = 1 << 5,
  kUpper = 1 << 6,
  kLower = 1 << 7,
  kTitle = 1 << 8,
  kIdentifierStart = 1 << 9,
  kIdentifierPart = 1 << 10,
  kCaseIgnorable = 1 << 11,
  kCased = 1 << 12,
};

uint32_t flags(char32_t c);
inline bool has(char32_t c, uint32_t mask) { return (flags(c) & mask) != 0; }
inline bool is_space(char32_t c) { return has(c, kSpace); }
// A character that regular expressions call \w.
inline bool is_word(char32_t c) { return c == '_' || has(c, kAlpha | kDecimal | kDigit | kNumeric); }

// Full mappings: one character may become up to three.
std::u32string upper(char32_t c);
std::u32string lower(char32_t c);
std::u32string title(char32_t c);
std::u32string fold(char32_t c);

}  // namespace hierarchos::jinja::unicode
