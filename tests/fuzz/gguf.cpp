// The file, the Hugging Face package that it stands for, and its tokenizer.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "formats/gguf.h"
#include "formats/gguf_model.h"
#include "tokenizer/tokenizer.h"

using namespace hierarchos;

namespace {

template <typename F>
void unless_refused(F f) {
  try {
    f();
  } catch (const Error&) {
  }
}

void visit(const formats::GgufFile& file, const formats::GgufValue& value) {
  if (const auto* array = std::get_if<formats::GgufArray>(&value.data))
    for (const formats::GgufValue& v : file.elements(*array)) visit(file, v);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  unless_refused([&] {
    // A copy of exactly this size, so that the sanitizer sees each byte read beyond it.
    auto bytes = std::make_shared<std::vector<std::byte>>(size);
    std::copy_n(reinterpret_cast<const std::byte*>(data), size, bytes->begin());
    const auto file = formats::GgufFile::parse("fuzz", *bytes, bytes);
    for (const auto& pair : file->metadata()) {
      const std::string& key = pair.first;
      visit(*file, pair.second);
      unless_refused([&] { file->texts(key); });
      unless_refused([&] { file->integers(key); });
      unless_refused([&] { file->numbers(key); });
      unless_refused([&] { file->number(key); });
    }
    for (const auto& entry : file->entries()) unless_refused([&] { file->tensor(entry.first).cast(DType::F32); });
    unless_refused([&] {
      const formats::GgufModel model = formats::gguf_model(*file);
      for (const auto& pair : model.tensors) {
        const auto& tensor = pair.second;
        unless_refused([&] { formats::as_published(file->tensor(tensor.name), tensor); });
      }
    });
    unless_refused([&] {
      const auto tokenizer = Tokenizer::from_gguf(*file);
      const auto ids = tokenizer->encode("Hello, it's 2024:\n\t\xC3\xA9\xFF<|im_end|> x");
      tokenizer->decode(ids);
    });
  });
  return 0;
}
