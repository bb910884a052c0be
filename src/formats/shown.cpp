#include "formats/shown.h"

#include <fmt/format.h>

namespace hierarchos::formats {

std::string shown(std::string_view name) {
  constexpr size_t kLongest = 120;
  std::string out;
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return name.size() > kLongest ? out + "…" : out;
}

}  // namespace hierarchos::formats
