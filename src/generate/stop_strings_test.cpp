#include "generate/stop_strings.h"

#include <gtest/gtest.h>

namespace hierarchos::generate {
namespace {

// Ids are bytes.
const Tokenizer& bytes() {
  static const Tokenizer tokenizer = [] {
    TokenizerData data;
    data.where = "test";
    for (int b = 0; b < 256; ++b) {
      // GPT-2's alphabet: printable bytes stand for themselves, the others follow from U+0100 on.
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      static int next = 256;
      const int code = printable ? b : next++;
      std::string text;
      if (code < 128) {
        text = static_cast<char>(code);
      } else {
        text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
      }
      data.tokens.push_back(text);
    }
    data.splits = {{"", false}};
    return Tokenizer(data);
  }();
  return tokenizer;
}

std::vector<std::string> pieces(const std::string& text, std::vector<std::string> stops) {
  TextStream stream(bytes(), std::move(stops));
  std::vector<std::string> out;
  for (char c : text) out.push_back(stream.push(static_cast<uint8_t>(c)));
  out.push_back(stream.finish());
  return out;
}

TEST(TextStream, WholeCharacters) {
  EXPECT_EQ(pieces("aé€", {}), (std::vector<std::string>{"a", "", "é", "", "", "€", ""}));
  EXPECT_EQ(pieces("a\xE2\x82", {}), (std::vector<std::string>{"a", "", "", "\uFFFD"}));
}

TEST(TextStream, HoldsWhatMayBecomeAStopString) {
  EXPECT_EQ(pieces("xabay", {"abc"}), (std::vector<std::string>{"x", "", "", "ab", "ay", ""}));
  EXPECT_EQ(pieces("xaab", {"abc"}), (std::vector<std::string>{"x", "", "a", "", "ab"}));
  EXPECT_EQ(pieces("xabcd", {"abc"}), (std::vector<std::string>{"x", "", "", "", "", ""}));
}

TEST(TextStream, TheFirstOfSeveralCounts) {
  EXPECT_EQ(pieces("1ab2", {"b2", "ab2", "2"}), (std::vector<std::string>{"1", "", "", "", ""}));
}

}  // namespace
}  // namespace hierarchos::generate
