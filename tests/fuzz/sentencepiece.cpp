// SentencePiece models; what follows a line of dashes is a text to encode.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "tokenizer/sentencepiece.h"

using namespace hierarchos;
using namespace hierarchos::tokenizers;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = all.find("\n---\n");
  const std::string_view text =
      line == std::string_view::npos ? " Hello,  world: \xC3\xA9\xE2\x96\x81" : all.substr(line + 5);
  try {
    const Pipeline pipeline(make_parts(SpmModel::read(all.substr(0, line), "fuzz")));
    const Encoding encoding = pipeline.encode(unicode::repaired(text));
    const std::string decoded = pipeline.decode(encoding.ids);
    if (!unicode::is_valid(decoded)) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
