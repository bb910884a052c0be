// Characters as the reference tokenizer sees them. Its regular expressions are Oniguruma's, so the classes that
// patterns name (\p{L}, \s and so on) are read from Oniguruma; categories, case and normal forms are utf8proc's. The
// reference is built with tables of several Unicode versions: docs/tokenizers.md lists the characters that differ.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hierarchos::unicode {

// Bits of flags().
enum Flag : uint32_t {
  // Oniguruma's classes.
  kLetter = 1u << 0,          // \p{L}
  kNumber = 1u << 1,          // \p{N}
  kSpace = 1u << 2,           // \s
  kUpper = 1u << 3,           // \p{Lu}
  kLower = 1u << 4,           // \p{Ll}
  kTitle = 1u << 5,           // \p{Lt}
  kModifierLetter = 1u << 6,  // \p{Lm}
  kOtherLetter = 1u << 7,     // \p{Lo}
  kMarkClass = 1u << 8,       // \p{M}
  kWord = 1u << 9,            // \w as Unicode's annex 18 has it: alphabetic, marks, decimal digits, connectors, joiners
  // utf8proc's categories.
  kWhitespace = 1u << 10,   // White_Space
  kNumeric = 1u << 11,      // Nd, Nl, No
  kPunctuation = 1u << 12,  // P*, and ASCII's symbols
  kControl = 1u << 13,      // Cc, Cf, Co
  kMarkNonspacing = 1u << 14,
  kMark = 1u << 15,        // Mn, Mc, Me
  kLowercases = 1u << 16,  // to_lower changes it
  kCjk = 1u << 17,         // the blocks of ideographs that BERT's normalizer sets apart
  // A text of such characters is in the form: none changes, none joins what stands before it.
  kNfd = 1u << 18,
  kNfkd = 1u << 19,
  kNfc = 1u << 20,
  kNfkc = 1u << 21,
};

namespace internal {
using Block = std::array<uint32_t, 256>;
extern std::array<std::atomic<const Block*>, 0x1100> blocks;
const Block* make_block(uint32_t index);
}  // namespace internal

// Any code point; 0 above 10FFFF. Blocks of 256 are made at their first use.
inline uint32_t flags(char32_t c) {
  if (c > 0x10FFFF) return 0;
  const internal::Block* block = internal::blocks[c >> 8].load(std::memory_order_acquire);
  if (!block) block = internal::make_block(c >> 8);
  return (*block)[c & 0xFF];
}

// Decodes one code point of valid UTF-8 and moves on.
inline char32_t next(const char*& p) {
  const auto byte = [&](int i) { return static_cast<char32_t>(static_cast<uint8_t>(p[i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return ++p, first;
  char32_t c;
  if (first < 0xE0)
    c = (first & 0x1F) << 6 | (byte(1) & 0x3F), p += 2;
  else if (first < 0xF0)
    c = (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), p += 3;
  else
    c = (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), p += 4;
  return c;
}

inline bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }
// Bytes of the code point that begins with this byte.
inline size_t length_of(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
// The last code point of valid UTF-8 that is not empty.
char32_t last(std::string_view text);
inline size_t width(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }
inline char* put(char32_t c, char* out) {
  if (c < 0x80) {
    *out++ = static_cast<char>(c);
    return out;
  }
  if (c < 0x800) {
    *out++ = static_cast<char>(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      *out++ = static_cast<char>(0xE0 | c >> 12);
    } else {
      *out++ = static_cast<char>(0xF0 | c >> 18);
      *out++ = static_cast<char>(0x80 | (c >> 12 & 0x3F));
    }
    *out++ = static_cast<char>(0x80 | (c >> 6 & 0x3F));
  }
  *out++ = static_cast<char>(0x80 | (c & 0x3F));
  return out;
}
void append(std::string& text, char32_t c);
bool is_ascii(std::string_view text);
bool is_valid(std::string_view text);
size_t count(std::string_view text);  // code points of valid UTF-8
// The text with U+FFFD for what is no UTF-8.
std::string repaired(std::string_view text);

// The lower case of one character, in full (U+0130 has two).
std::pair<char32_t, char32_t> to_lower(char32_t c);

// A character of a changed text, and how it came about, as the reference counts it: 0 stands for one character before,
// 1 was inserted after the one before it, -n stands for 1 + n characters.
using Change = std::pair<char32_t, int64_t>;
// NFD, NFKD (compatible), NFC, NFKC (compose).
void normalize(std::string_view text, bool compatible, bool compose, std::vector<Change>& out);

// The script's number by Oniguruma's tables, as SentencePiece groups them: Hiragana and Katakana count as Han, and 0 is
// a character without one (also the space).
int script(char32_t c);

// Ends of the extended grapheme clusters of a text, in bytes.
void grapheme_ends(std::string_view text, std::vector<size_t>& ends);

// Does Oniguruma's class hold the character? The name as in \p{name}.
bool in_class(char32_t c, const char* name);

}  // namespace hierarchos::unicode
