// The names that llama.cpp writes to tokenizer.ggml.pre, and the patterns that stand for them: those of the models' own
// tokenizer.json, which llama.cpp approximates where its regular expressions cannot say them. A file without a name,
// and the name "default", get the patterns that llama.cpp falls back to.
#include <map>

#include "tokenizer/sources.h"

namespace hierarchos::tokenizers {
namespace {

const char* const kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                            R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                            R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
const char* const kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";

using Table = std::map<std::string, GgufPattern, std::less<>>;

Table make_table() {
  Table table;
  const auto add = [&](std::initializer_list<const char*> names, std::vector<std::string> patterns,
                       bool ignore_merges = false, bool add_bos = false) {
    for (const char* name : names) table[name] = {patterns, ignore_merges, add_bos};
  };
  const std::string gpt2 = kGpt2Pattern;
  add({"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"});
  add({"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
       "modern-bert", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4"},
      {gpt2});
  add({"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
      {kLlama3}, true, true);
  add({"dbrx", "smaug-bpe", "chatglm-bpe"}, {kLlama3});
  add({"glm4", "glm5"}, {kLlama3}, true);
  add({"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "solar-open", "megrez", "grok-2"},
      {kQwen2});
  add({"qwen35"}, {kQwen35});
  add({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
      {R"(\p{N})", gpt2});
  add({"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2, "[0-9][0-9][0-9]"});
  add({"deepseek-coder"},
      {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+", R"(\p{N})"});
  add({"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
      {R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+", kDeepSeek3});
  add({"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {kGpt4o});
  add({"tekken"}, {kTekken}, true, true);
  add({"poro-chat", "bloom", "gpt3-finnish"}, {kBloom});
  add({"viking"}, {kBloom, R"(\p{N})"});
  add({"seed-coder"}, {kSeedCoder});
  return table;
}

}  // namespace

const GgufPattern* find_gguf_pattern(std::string_view name) {
  static const Table kTable = make_table();
  const auto found = kTable.find(name);
  return found == kTable.end() ? nullptr : &found->second;
}

}  // namespace hierarchos::tokenizers
