// What words became, so that common ones are looked up instead of being tokenized. A line of the table holds one word;
// a later word of the same line takes its place.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hierarchos::tokenizers {

// A token of a text: its id, and its bytes in the piece that was tokenized.
struct Token {
  int32_t id = 0;
  uint32_t begin = 0, end = 0;
};

class WordCache {
 public:
  static constexpr size_t kLongestWord = 38, kMostTokens = 16;

  // Appends the word's tokens, with `begin` added to their places; false if it is not known.
  bool find(std::string_view word, uint32_t begin, std::vector<Token>& out) {
    if (word.size() > kLongestWord || word.empty()) return false;
    if (lines_.empty()) lines_.resize(kLines);
    hash_ = XXH3_64bits(word.data(), word.size());
    const Line& line = lines_[hash_ % kLines];
    if (line.hash != hash_ || line.length != word.size() || std::memcmp(line.word, word.data(), word.size()) != 0)
      return false;
    for (size_t i = 0; i < line.count; ++i) {
      const uint32_t end = begin + line.lengths[i];
      out.push_back({line.ids[i], begin, end});
      begin = end;
    }
    return true;
  }
  // After a find() of the same word that failed: its tokens are those from `first` on, one after another.
  void keep(std::string_view word, const std::vector<Token>& tokens, size_t first) {
    const size_t count = tokens.size() - first;
    if (word.size() > kLongestWord || word.empty() || count > kMostTokens) return;
    Line& line = lines_[hash_ % kLines];
    line.length = 0;
    for (size_t i = 0; i < count; ++i) {
      const Token& token = tokens[first + i];
      if (token.end - token.begin > 255) return;
      line.ids[i] = token.id;
      line.lengths[i] = static_cast<uint8_t>(token.end - token.begin);
    }
    line.hash = hash_;
    line.length = static_cast<uint8_t>(word.size());
    line.count = static_cast<uint8_t>(count);
    std::memcpy(line.word, word.data(), word.size());
  }

 private:
  static constexpr size_t kLines = size_t{1} << 14;
  struct alignas(64) Line {
    uint64_t hash = 0;
    uint8_t length = 0, count = 0;
    char word[kLongestWord];
    uint8_t lengths[kMostTokens];
    int32_t ids[kMostTokens];
  };
  static_assert(sizeof(Line) == 128);
  std::vector<Line> lines_;
  uint64_t hash_ = 0;
};

}  // namespace hierarchos::tokenizers
