#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/json.h"
#include "base/os/file.h"
#include "base/utf8.h"

namespace hierarchos {
namespace {

using nlohmann::json;
using tokenizers::Pipeline;
using Ids = std::vector<int32_t>;

const std::string kDemo = HIERARCHOS_SOURCE_DIR "/examples/demo-model/";

json demo_json() { return read_json_file(kDemo + "tokenizer.json"); }
std::shared_ptr<Tokenizer> demo() { return Tokenizer::from_folder(kDemo); }
std::shared_ptr<Tokenizer> make(const json& file) { return Tokenizer::from_json(file.dump(), "test"); }

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
  const auto tokenizer = demo();
  EXPECT_EQ(tokenizer->vocab_size(), 1146);
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
  EXPECT_EQ(tokenizer->eos(), 0);
  for (const json& row : cases("tokenizer_demo.json")) {
    check(*tokenizer, row);
    const auto ids = row["ids"].get<Ids>();
    EXPECT_EQ(tokenizer->decode(ids), row["decoded"].get<std::string>());
    EXPECT_EQ(streamed(*tokenizer, ids, true), row["decoded"].get<std::string>());
  }
}

TEST(Tokenizer, LlamaPatternEqualsReference) {
  const json data = read_json_file(HIERARCHOS_TEST_DATA "/tokenizer_demo.json");
  json file = demo_json();
  const json split = {
      {"type", "Split"}, {"pattern", {{"Regex", data["llama_pattern"]}}}, {"behavior", "Isolated"}, {"invert", false}};
  const json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, level}}};
  const auto tokenizer = make(file);
  for (const json& row : data["cases"]) check(*tokenizer, row, row.contains("llama_ids") ? "llama_ids" : "ids");
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

// One U+FFFD for each maximal subpart, as Python's decoder puts it.
TEST(Tokenizer, BytesThatAreNoUtf8) {
  const auto tokenizer = demo();
  const auto round = [&](const char* text) { return tokenizer->decode(tokenizer->encode(text)); };
  EXPECT_EQ(round("a\xE4\xBDz"), "a\uFFFDz");
  EXPECT_EQ(round("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(round("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(round("caf\xE9 1"), "caf\uFFFD 1");
}

TEST(Tokenizer, StreamHoldsBackPartsOfCodePoints) {
  const auto tokenizer = demo();
  const Ids ids = tokenizer->encode("\U0001F600");
  ASSERT_EQ(ids.size(), 4u);
  Tokenizer::Stream stream = tokenizer->stream();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids[3]), "\U0001F600");
  EXPECT_EQ(stream.finish(), "");
  stream.push(ids[0]);
  EXPECT_EQ(stream.push(tokenizer->encode("a")[0]), "\uFFFDa");
  stream.push(ids[0]);
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, IdsThatAreNoToken) {
  const auto tokenizer = demo();
  EXPECT_EQ(tokenizer->decode(Ids{-1, 1146, 1 << 30}), "");
  EXPECT_EQ(tokenizer->decode(Ids{0}, true), "");
  EXPECT_EQ(tokenizer->decode(Ids{0}, false), "<|endoftext|>");
}

TEST(Tokenizer, LongWords) {
  const auto tokenizer = demo();
  for (const char* unit : {"a", " ", "the", "\xFF"}) {
    std::string text;
    while (text.size() < 300000) text += unit;
    EXPECT_GT(tokenizer->encode(text).size(), 0u);
  }
}

// The reference's answers, with the vocabulary a, b, c, ab, bc, abc.
TEST(Tokenizer, MergesInOrder) {
  json file = json::parse(R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4,"abc":5},
                              "merges":[["b","c"],["a","b"],["a","bc"]]}})");
  EXPECT_EQ(make(file)->encode("abcab"), (Ids{5, 3}));
  EXPECT_EQ(make(file)->encode("abzb"), (Ids{3, 1}));  // what has no token is left out
  EXPECT_EQ(make(file)->encode("azb"), (Ids{3}));
  file["model"]["merges"].erase(2);
  EXPECT_EQ(make(file)->encode("abc"), (Ids{0, 4}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(make(file)->encode("abc"), (Ids{5}));
  file["model"]["merges"].push_back(json::array({"c", "c"}));
  EXPECT_THROW(make(file), DataError);
}

// Dropout draws from the text: some merges happen, others do not, and the same text gives the same tokens.
TEST(Tokenizer, Dropout) {
  json file = demo_json();
  file["model"]["dropout"] = 0.5;
  const auto half = make(file);
  const std::string text = "Once upon a time there was a little girl who liked to play outside";
  const Ids ids = half->encode(text);
  EXPECT_EQ(half->encode(text), ids);
  EXPECT_EQ(half->decode(ids), text);
  EXPECT_GT(ids.size(), demo()->encode(text).size());
  EXPECT_LT(ids.size(), text.size());
}

// What is not honoured is refused, by name.
void refuses(const char* pointer, const json& value, const std::string& name) {
  json file = demo_json();
  file[json::json_pointer(pointer)] = value;
  try {
    make(file);
    ADD_FAILURE() << pointer << " was accepted";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
}

TEST(Tokenizer, Refuses) {
  refuses("/model/type", "Novelty", "Novelty");
  refuses("/normalizer", {{"type", "Novelty"}}, "Novelty");
  refuses("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Novelty"}}}}}, "Novelty");
  refuses("/decoder/type", "Novelty", "Novelty");
  refuses("/post_processor", {{"type", "Novelty"}}, "Novelty");
  refuses("/novelty", 1, "novelty");
  refuses("/version", "2.0", "2.0");
  refuses("/truncation", {{"max_length", 4}, {"stride", 0}, {"strategy", "Novelty"}}, "Novelty");
}

TEST(Tokenizer, Malformed) {
  for (const char* pointer : {"/model/vocab", "/model/merges", "/model/merges/0", "/added_tokens", "/added_tokens/0/id",
                              "/added_tokens/0/content", "/decoder", "/pre_tokenizer", "/model"}) {
    json file = demo_json();
    file[json::json_pointer(pointer)] = 7;
    if (std::string_view(pointer).ends_with("/id")) file[json::json_pointer(pointer)] = 1ll << 40;
    EXPECT_THROW(make(file), DataError) << pointer;
  }
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += R"({"type":"Sequence","normalizers":[)";
  for (int i = 0; i < 200; ++i) deep += "]}";
  EXPECT_THROW(Tokenizer::from_json(
                   R"({"model":{"type":"WordLevel","vocab":{},"unk_token":"x"},"normalizer":)" + deep + "}", "deep"),
               DataError);
}

// The highest id that a file may claim costs no more than another.
TEST(Tokenizer, HugeIds) {
  const auto tokenizer =
      Tokenizer::from_json(R"({"model":{"type":"WordLevel","vocab":{"a":2147483647,"b":1},"unk_token":"b"}})", "huge");
  EXPECT_EQ(tokenizer->encode("a"), (Ids{2147483647}));
  EXPECT_EQ(tokenizer->decode(Ids{2147483647, 5}), "a");
}

void write(const std::filesystem::path& path, const std::string& text) { write_file_atomic(path, text); }

// bert-base-uncased's way, with a small vocabulary: the reference (BertTokenizer of transformers 5.24) gives these ids.
TEST(Tokenizer, VocabTxt) {
  const TemporaryDirectory folder;
  write(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n!\ncafe\n");
  write(folder.path() / "tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer"})");
  const auto tokenizer = Tokenizer::from_folder(folder.path());
  EXPECT_EQ(tokenizer->encode("Hello worlds! Caf\u00e9 [MASK] x"), (Ids{2, 5, 6, 7, 8, 9, 4, 1, 3}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 6, 7, 8, 3}), "hello worlds!");
  write(folder.path() / "tokenizer_config.json", R"({"tokenizer_class":"FunnelTokenizer"})");
  EXPECT_THROW(Tokenizer::from_folder(folder.path()), UnsupportedError);
}

// vocab.json and merges.txt of the demo's tokenizer.json give the same ids.
TEST(Tokenizer, VocabAndMerges) {
  const TemporaryDirectory folder;
  const json file = demo_json();
  std::string merges = "#version: 0.2\n";
  for (const json& merge : file["model"]["merges"])
    merges += merge.is_string() ? merge.get<std::string>() + "\n"
                                : merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  write(folder.path() / "vocab.json", file["model"]["vocab"].dump());
  write(folder.path() / "merges.txt", merges);
  write(folder.path() / "tokenizer_config.json",
        R"({"tokenizer_class":"GPT2Tokenizer","eos_token":"<|endoftext|>","bos_token":"<|endoftext|>"})");
  const auto tokenizer = Tokenizer::from_folder(folder.path());
  for (const json& row : cases("tokenizer_demo.json"))
    EXPECT_EQ(tokenizer->encode(row["text"].get<std::string>()), row["ids"].get<Ids>()) << row["text"];
  EXPECT_EQ(tokenizer->eos(), 0);
  write(folder.path() / "tokenizer_config.json", R"({"add_bos_token":true,"bos_token":"<|endoftext|>"})");
  EXPECT_EQ(Tokenizer::from_folder(folder.path())->encode("a")[0], 0);
}

// Splitters do what Oniguruma does.
TEST(Tokenizer, SplittersEqualOniguruma) {
  const char* patterns[] = {
      tokenizers::kGpt2Pattern,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
  const char32_t common[] = {' ',   ' ',  '\n',    '\r',  '\t',  '\'',   's',    'S',    't',   'r',  'e',
                             'v',   'l',  'L',     'd',   'm',   'a',    'A',    '1',    '2',   '.',  '/',
                             '-',   0xA0, 0x17F,   0x300, 0x2B0, 0x1C5,  0x4E2D, 0x3002, 0x0,   0x85, 0x2028,
                             0x661, 0xBD, 0x1F600, 0xE9,  0xC9,  0x212A, 0x903,  0x200D, 0xFFFD};
  std::mt19937 random(7);
  for (const char* pattern : patterns) {
    const auto splitter = tokenizers::find_splitter(pattern);
    ASSERT_NE(splitter, nullptr) << pattern;
    const Regex regex(pattern, "test");
    std::vector<Match> fast, slow;
    for (int round = 0; round < 20000; ++round) {
      std::string text;
      const auto length = 1 + random() % 12;
      for (unsigned i = 0; i < length; ++i) {
        char32_t c = common[random() % std::size(common)];
        if (random() % 8 == 0) c = 0x20 + random() % 0x3000;
        unicode::append(text, c);
      }
      splitter(text, fast);
      regex.find_all(text, slow);
      ASSERT_EQ(fast.size(), slow.size()) << pattern << "\n" << json(text).dump(-1, ' ', true);
      for (size_t i = 0; i < fast.size(); ++i) {
        ASSERT_EQ(fast[i].begin, slow[i].begin) << json(text).dump(-1, ' ', true);
        ASSERT_EQ(fast[i].end, slow[i].end) << json(text).dump(-1, ' ', true);
        ASSERT_TRUE(slow[i].matched);
      }
    }
  }
}

TEST(Tokenizer, BatchEqualsSingle) {
  const auto tokenizer = demo();
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back("Once upon a time " + std::to_string(i * 7919) + " caf\u00e9");
  const auto batch = tokenizer->pipeline().encode_batch(texts);
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(batch[i].ids, tokenizer->pipeline().encode(texts[i]).ids);
}

}  // namespace
}  // namespace hierarchos
