// tokenizer.json; what follows a line of dashes is a text to encode.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

using namespace hierarchos;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = all.find("\n---\n");
  const std::string_view json = all.substr(0, line);
  const std::string_view text =
      line == std::string_view::npos ? "Hello, it's 2024:\n\t\xC3\xA9\xFF" : all.substr(line + 5);
  try {
    const auto tokenizer = Tokenizer::from_json(json, "fuzz");
    const tokenizers::Pipeline& pipeline = tokenizer->pipeline();
    const auto ids = tokenizer->encode(text);
    auto stream = tokenizer->stream(false);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    tokenizer->decode(ids, true);
    const std::string repaired = unicode::repaired(text);
    const size_t half = repaired.size() / 2;
    if (unicode::is_valid(repaired.substr(0, half)))
      pipeline.encode_pair(repaired.substr(0, half), repaired.substr(half));
    const tokenizers::Encoding encoding = pipeline.encode(repaired);
    if (encoding.offsets.size() != encoding.size() || encoding.type_ids.size() != encoding.size()) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
