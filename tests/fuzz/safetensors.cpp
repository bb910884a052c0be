#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "formats/safetensors.h"

using namespace hierarchos;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    // A copy of exactly this size, so that the sanitizer sees each byte read beyond it.
    auto bytes = std::make_shared<std::vector<std::byte>>(size);
    std::copy_n(reinterpret_cast<const std::byte*>(data), size, bytes->begin());
    const auto file = formats::SafetensorsFile::parse("fuzz", *bytes, bytes);
    for (const auto& [name, entry] : file->entries()) {
      try {
        file->tensor(name).cast(DType::F32);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
