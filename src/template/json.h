// JSON as values of templates.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "template/value.h"

namespace hierarchos::jinja {

// Integers of any size stay exact, and of repeated keys the last counts, as for Python. DataError naming `where`.
Value parse_json_value(std::string_view json, const std::string& where);
Value json_value(const nlohmann::ordered_json& j);

// The places of `keys` in their order, equal ones as they come; TypeError where two cannot be ordered.
std::vector<size_t> sorted_order(const Values& keys, bool reverse);

}  // namespace hierarchos::jinja
