// Numbers from text, as Python's int() and float() read them.
#pragma once

#include <optional>
#include <string_view>

#include "template/integer.h"

namespace hierarchos::jinja {

// nullopt where Python raises ValueError.
std::optional<BigInt> parse_integer(std::string_view text, int64_t base);
std::optional<double> parse_float(std::string_view text);

}  // namespace hierarchos::jinja
