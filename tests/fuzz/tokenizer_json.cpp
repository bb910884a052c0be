// tokenizer.json; what follows a line of dashes is a text to encode.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

using namespace hierarchos;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = all.find("\n---\n");
  const std::string_view json = all.substr(0, line);
  const std::string_view text =
      line == std::string_view::npos ? "Hello, it's 2024:\n\t\xC3\xA9\xFF" : all.substr(line + 5);
  try {
    const Tokenizer tokenizer(tokenizer_data(parse_json(json, "fuzz"), nlohmann::json(), "fuzz"));
    const auto ids = tokenizer.encode(text);
    auto stream = tokenizer.stream(false);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    if (streamed != tokenizer.decode(ids, false)) __builtin_trap();
    tokenizer.decode(ids, true);
  } catch (const Error&) {
  }
  return 0;
}
