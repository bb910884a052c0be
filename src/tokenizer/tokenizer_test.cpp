#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"

namespace hierarchos {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

const std::string kDemo = HIERARCHOS_SOURCE_DIR "/examples/demo-model/";

json demo_json() { return read_json_file(kDemo + "tokenizer.json"); }
Tokenizer demo() {
  return Tokenizer(tokenizer_data(demo_json(), read_json_file(kDemo + "tokenizer_config.json"), "demo"));
}

json cases(const std::string& name) {
  json rows = read_json_file(std::string(HIERARCHOS_TEST_DATA "/") + name)["cases"];
  EXPECT_GT(rows.size(), 150u);
  return rows;
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids, bool skip_special) {
  Tokenizer::Stream stream = tokenizer.stream(skip_special);
  std::string out;
  for (const int32_t id : ids) {
    const std::string more = stream.push(id);
    for (std::string_view rest = more; !rest.empty(); rest.remove_prefix(next_utf8(rest).length))
      EXPECT_EQ(next_utf8(rest).kind, Utf8Unit::Valid);
    out += more;
  }
  return out + stream.finish();
}

void check(const Tokenizer& tokenizer, const json& row, const char* key = "ids") {
  const auto text = row["text"].get<std::string>();
  const auto ids = row[key].get<Ids>();
  EXPECT_EQ(tokenizer.encode(text), ids) << row["text"];
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  EXPECT_EQ(streamed(tokenizer, ids, false), text);
}

TEST(Tokenizer, DemoEqualsReference) {
  const Tokenizer tokenizer = demo();
  EXPECT_EQ(tokenizer.vocab_size(), 1146);
  EXPECT_EQ(tokenizer.bos(), std::nullopt);
  EXPECT_EQ(tokenizer.eos(), 0);
  for (const json& row : cases("tokenizer_demo.json")) {
    check(tokenizer, row);
    const auto ids = row["ids"].get<Ids>();
    EXPECT_EQ(tokenizer.decode(ids), row["decoded"].get<std::string>());
    EXPECT_EQ(streamed(tokenizer, ids, true), row["decoded"].get<std::string>());
  }
}

TEST(Tokenizer, LlamaPatternEqualsReference) {
  const json file = read_json_file(HIERARCHOS_TEST_DATA "/tokenizer_demo.json");
  TokenizerData data = tokenizer_data(demo_json(), {}, "demo");
  data.splits = {{file["llama_pattern"].get<std::string>()}};
  const Tokenizer tokenizer(std::move(data));
  for (const json& row : file["cases"]) check(tokenizer, row, row.contains("llama_ids") ? "llama_ids" : "ids");
}

TEST(Tokenizer, SmolLm2EqualsReference) {
  const char* path = std::getenv("HIERARCHOS_SMOLLM2");
  if (!path) GTEST_SKIP() << "HIERARCHOS_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  const auto tokenizer = Tokenizer::from_package(*formats::Package::open(path));
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 2);
  EXPECT_EQ(tokenizer->token_id("<|im_end|>"), 2);
  for (const json& row : cases("tokenizer_smollm2.json")) check(*tokenizer, row);
}

TEST(Tokenizer, FromPackage) {
  const auto tokenizer = Tokenizer::from_package(*formats::Package::open(kDemo));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("Once upon a time")), "Once upon a time");
}

TEST(Tokenizer, BytesThatAreNoUtf8) {
  const Tokenizer tokenizer = demo();
  for (const std::string text :
       {"\xFF", "a\xC3", "\xE4\xBD", "x\xED\xA0\x80y", "\xF0\x9F\x98 ok", "\x80\x80 \xC0\xAF", "caf\xE9 1"}) {
    const Ids ids = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(ids), streamed(tokenizer, ids, true));
  }
  // One U+FFFD for each maximal subpart.
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xE4\xBDz")), "a\uFFFDz");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("\xED\xA0\x80")), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("\xF0\x9F\x98")), "\uFFFD");
}

TEST(Tokenizer, StreamHoldsBackPartsOfCodePoints) {
  const Tokenizer tokenizer = demo();
  const Ids ids = tokenizer.encode("\U0001F600");
  ASSERT_EQ(ids.size(), 4u);
  Tokenizer::Stream stream = tokenizer.stream();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids[3]), "\U0001F600");
  EXPECT_EQ(stream.finish(), "");
  stream.push(ids[0]);
  EXPECT_EQ(stream.push(tokenizer.encode("a")[0]), "\uFFFDa");
  stream.push(ids[0]);
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, IdsThatAreNoToken) {
  const Tokenizer tokenizer = demo();
  EXPECT_EQ(tokenizer.decode(Ids{-1, 1146, 1 << 30}), "");
  EXPECT_EQ(tokenizer.decode(Ids{0}, true), "");
  EXPECT_EQ(tokenizer.decode(Ids{0}, false), "<|endoftext|>");
}

TEST(Tokenizer, LongWords) {
  const Tokenizer tokenizer = demo();
  for (const char* unit : {"a", " ", "the", "\xFF"}) {
    std::string text;
    while (text.size() < 300000) text += unit;
    EXPECT_GT(tokenizer.encode(text).size(), 0u);
  }
}

TEST(Tokenizer, TokensAroundTexts) {
  TokenizerData data = tokenizer_data(demo_json(), {}, "demo");
  data.bos = data.eos = 0;
  data.add_bos = data.add_eos = true;
  const Tokenizer tokenizer(std::move(data));
  const Ids inner = tokenizer.encode("a cat", false);
  Ids all{0};
  all.insert(all.end(), inner.begin(), inner.end());
  all.push_back(0);
  EXPECT_EQ(tokenizer.encode("a cat"), all);
}

// The reference's answers, with the vocabulary a, b, c, ab, bc, abc.
TEST(Tokenizer, MergesInOrder) {
  TokenizerData data;
  data.tokens = {"a", "b", "c", "ab", "bc", "abc"};
  data.merges = {{"b", "c"}, {"a", "b"}, {"a", "bc"}};
  data.splits = {{""}};
  EXPECT_EQ(Tokenizer(data).encode("abcab"), (Ids{5, 3}));
  EXPECT_EQ(Tokenizer(data).encode("abzb"), (Ids{3, 1}));  // what has no token is left out
  EXPECT_EQ(Tokenizer(data).encode("azb"), (Ids{3}));
  data.merges.pop_back();
  EXPECT_EQ(Tokenizer(data).encode("abc"), (Ids{0, 4}));
  data.ignore_merges = true;
  EXPECT_EQ(Tokenizer(data).encode("abc"), (Ids{5}));
  data.merges.emplace_back("c", "c");
  EXPECT_THROW(Tokenizer{data}, DataError);
}

TEST(Tokenizer, AddedTokens) {
  TokenizerData data = tokenizer_data(demo_json(), {}, "demo");
  data.added.push_back({1146, "<x", false, false});
  data.added.push_back({1147, "<x>", true, false});
  data.added.push_back({1148, "x>", false, true});
  const Tokenizer tokenizer(std::move(data));
  EXPECT_EQ(tokenizer.vocab_size(), 1149);
  EXPECT_EQ(tokenizer.encode("<x><xx>"), (Ids{1147, 1146, 1148}));
  EXPECT_EQ(tokenizer.decode(Ids{1147, 1146, 1148}), "<xx>");
  EXPECT_EQ(tokenizer.decode(Ids{1147, 1146, 1148}, false), "<x><xx>");
}

TEST(Tokenizer, PreTokenizers) {
  json file = demo_json();
  const auto ids = [&](const char* text) { return Tokenizer(tokenizer_data(file, {}, "demo")).encode(text); };
  file["pre_tokenizer"]["add_prefix_space"] = true;
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Digits"}}, file["pre_tokenizer"]}}};
  EXPECT_EQ(ids("x 2024 <|endoftext|>y"), (Ids{221, 88, 221, 221, 18, 16, 18, 20, 221, 0, 221, 89}));
  file["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = true;
  EXPECT_EQ(ids("12"), (Ids{221, 17, 221, 18}));
}

// What is not honoured is refused, by name.
void refuses(const char* pointer, const json& value, const std::string& name) {
  json file = demo_json();
  file[json::json_pointer(pointer)] = value;
  try {
    tokenizer_data(file, {}, "demo");
    ADD_FAILURE() << pointer << " was accepted";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

TEST(Tokenizer, Refuses) {
  refuses("/model/type", "Unigram", "Unigram");
  refuses("/model/byte_fallback", true, "byte_fallback");
  refuses("/model/dropout", 0.1, "dropout");
  refuses("/model/end_of_word_suffix", "</w>", "end_of_word_suffix");
  refuses("/model/novelty", true, "novelty");
  refuses("/normalizer", {{"type", "NFC"}}, "NFC");
  refuses("/pre_tokenizer", {{"type", "Metaspace"}}, "Metaspace");
  refuses("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Digits"}}}}}, "Digits");
  refuses("/decoder/type", "Metaspace", "Metaspace");
  refuses("/post_processor", {{"type", "TemplateProcessing"}}, "TemplateProcessing");
  refuses("/added_tokens/0/lstrip", true, "lstrip");
  refuses("/novelty", 1, "novelty");
}

TEST(Tokenizer, Malformed) {
  for (const char* pointer : {"/model/vocab", "/model/merges", "/model/merges/0", "/added_tokens", "/added_tokens/0/id",
                              "/added_tokens/0/content", "/decoder", "/pre_tokenizer", "/model"}) {
    json file = demo_json();
    file[json::json_pointer(pointer)] = 7;
    if (std::string_view(pointer).ends_with("/id")) file[json::json_pointer(pointer)] = 1ll << 40;
    EXPECT_THROW(Tokenizer(tokenizer_data(file, {}, "demo")), DataError) << pointer;
  }
  json file = demo_json();
  file["model"]["vocab"]["!"] = 2;  // twice
  EXPECT_THROW(tokenizer_data(file, {}, "demo"), DataError);
  EXPECT_THROW(tokenizer_data(demo_json(), {{"eos_token", "</s>"}}, "demo"), DataError);
  EXPECT_EQ(tokenizer_data(demo_json(), {{"bos_token", {{"content", "!"}}}}, "demo").bos, 1);
}

}  // namespace
}  // namespace hierarchos
