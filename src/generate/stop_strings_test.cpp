#include "generate/stop_strings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hierarchos::generate {
namespace {

// Ids are bytes.
const Tokenizer& bytes() {
  static const std::shared_ptr<Tokenizer> tokenizer = [] {
    nlohmann::json vocab;
    for (int b = 0; b < 256; ++b) vocab[tokenizers::ByteAlphabet::spelled(std::string(1, static_cast<char>(b)))] = b;
    const nlohmann::json level = {
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
    const nlohmann::json model = {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}};
    const nlohmann::json file = {{"model", model}, {"pre_tokenizer", level}, {"decoder", level}};
    return Tokenizer::from_json(file.dump(), "test");
  }();
  return *tokenizer;
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
