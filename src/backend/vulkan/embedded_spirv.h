// SPIR-V modules built into the program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hierarchos {

// The module's words; empty when there is none of that name ("<operator>/<module>").
std::span<const uint32_t> embedded_spirv(std::string_view name);

}  // namespace hierarchos
