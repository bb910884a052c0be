#include "template/error.h"

#include "base/utf8.h"

namespace hierarchos {
namespace {

// What a template says, fit for a terminal.
std::string shown(std::string_view message) {
  constexpr size_t longest = 1000;
  std::string out;
  for (size_t at = 0; at < message.size();) {
    if (at >= longest) return out + "…";
    const Utf8Unit unit = next_utf8(message.substr(at));
    const auto byte = static_cast<unsigned char>(message[at]);
    if (message[at] == '\n')
      out += "\\n";
    else if (unit.kind != Utf8Unit::Valid || byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += message.substr(at, unit.length);
    at += unit.kind == Utf8Unit::Valid ? unit.length : 1;
  }
  return out;
}

}  // namespace

TemplateError::TemplateError(const std::string& where, int line, std::string kind, std::string message)
    : DataError("{}, line {}: {}", where, line, shown(message)),
      line_(line),
      kind_(std::move(kind)),
      message_(std::move(message)) {}

}  // namespace hierarchos
