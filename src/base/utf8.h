// UTF-8, as the Unicode standard has it (no surrogates, nothing overlong, nothing above 10FFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hierarchos {

struct Utf8Unit {
  enum Kind {
    Valid,      // one code point
    Invalid,    // bytes that begin no code point: what one U+FFFD stands for (the standard's "maximal subpart")
    Truncated,  // a code point's beginning, up to the end of the text: more bytes could complete it
  };
  Kind kind = Invalid;
  size_t length = 0;        // bytes
  char32_t code_point = 0;  // of a valid one
};

// The first unit of a text that is not empty.
inline Utf8Unit next_utf8(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {Utf8Unit::Valid, 1, first};
  if (first < 0xC2 || first > 0xF4) return {Utf8Unit::Invalid, 1};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint8_t low = 0x80, high = 0xBF;  // of the second byte
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  char32_t code_point = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Unit::Truncated, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < low || byte > high) return {Utf8Unit::Invalid, i};
    code_point = code_point << 6 | (byte & 0x3F);
    low = 0x80, high = 0xBF;
  }
  return {Utf8Unit::Valid, length, code_point};
}

}  // namespace hierarchos
