// SentencePiece's precompiled character maps: four bytes of length, a Darts double array, then texts that end with 0.
// Sources: sentencepiece's normalizer.cc, darts-clone's darts.h (the units' bits).
#include <array>
#include <cstring>

#include "base/error.h"
#include "tokenizer/normalizers.h"

namespace hierarchos::tokenizers {

CharacterMap::CharacterMap(std::string_view blob, const std::string& where) {
  uint32_t bytes = 0;
  if (blob.size() < 4) throw DataError("{}: the character map is cut off", where);
  std::memcpy(&bytes, blob.data(), 4);
  if (bytes > blob.size() - 4 || bytes < 4) throw DataError("{}: the character map is cut off", where);
  units_.resize(bytes / 4);
  std::memcpy(units_.data(), blob.data() + 4, units_.size() * 4);
  replacements_ = blob.substr(4 + units_.size() * 4);
  if (!unicode::is_valid(replacements_)) throw DataError("{}: the character map's texts are no UTF-8", where);
}

CharacterMap::Found CharacterMap::find(std::string_view text, bool longest) const {
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  Found found;
  uint32_t at = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte == 0) break;
    at ^= byte;
    if (at >= units_.size()) break;
    const uint32_t unit = units_[at];
    if ((unit & (1u << 31 | 0xFF)) != byte) break;
    at ^= offset(unit);
    if (!(unit >> 8 & 1)) continue;
    if (at >= units_.size()) break;
    const size_t value = units_[at] & 0x7FFFFFFF;
    if (value > replacements_.size()) break;
    const char* begin = replacements_.c_str() + value;
    // A replacement that begins within a character would be no UTF-8.
    if (value < replacements_.size() && unicode::is_continuation(*begin)) break;
    found = {i + 1, std::string_view(begin)};
    if (!longest) break;
  }
  return found;
}

std::string decode_base64(std::string_view text, const std::string& where) {
  static constexpr auto kValues = [] {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    int8_t next = 0;
    for (char c = 'A'; c <= 'Z'; ++c) values[static_cast<uint8_t>(c)] = next++;
    for (char c = 'a'; c <= 'z'; ++c) values[static_cast<uint8_t>(c)] = next++;
    for (char c = '0'; c <= '9'; ++c) values[static_cast<uint8_t>(c)] = next++;
    values['+'] = 62;
    values['/'] = 63;
    return values;
  }();
  size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') text.remove_suffix(1), ++padding;
  if ((text.size() + padding) % 4 != 0) throw DataError("{}: the base64 text has a wrong length", where);
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t bits = 0, count = 0;
  for (const char c : text) {
    const int8_t value = kValues[static_cast<uint8_t>(c)];
    if (value < 0) throw DataError("{}: a character that is no base64", where);
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

}  // namespace hierarchos::tokenizers
