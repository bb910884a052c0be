#include <array>

#include "tokenizer/normalizers.h"

namespace hierarchos::tokenizers {
namespace {

struct Tables {
  std::array<char16_t, 256> letters{};
  std::array<int16_t, 324> bytes{};
  constexpr Tables() {
    bytes.fill(-1);
    char16_t next = 256;
    for (size_t b = 0; b < 256; ++b) {
      const bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      letters[b] = itself ? static_cast<char16_t>(b) : next++;
      bytes[letters[b]] = static_cast<int16_t>(b);
    }
  }
};
constexpr Tables kTables;

}  // namespace

char32_t ByteAlphabet::letter(uint8_t byte) { return kTables.letters[byte]; }
int ByteAlphabet::byte(char32_t letter) { return letter < kTables.bytes.size() ? kTables.bytes[letter] : -1; }

void ByteAlphabet::spell(AlignedText& text, Scratch& scratch) {
  if (text.empty()) return;
  scratch.changes.clear();
  for (const char byte : text.text())
    scratch.changes.emplace_back(letter(static_cast<uint8_t>(byte)), unicode::is_continuation(byte) ? 1 : 0);
  text.transform(scratch.changes, 0, scratch.arena);
}

bool ByteAlphabet::read(std::string_view token, std::string& bytes) {
  bytes.clear();
  for (const char *p = token.data(), *end = p + token.size(); p < end;) {
    const int b = byte(unicode::next(p));
    if (b < 0) return false;
    bytes += static_cast<char>(b);
  }
  return true;
}

std::string ByteAlphabet::spelled(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) unicode::append(out, letter(static_cast<uint8_t>(byte)));
  return out;
}

}  // namespace hierarchos::tokenizers
