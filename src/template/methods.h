// The methods that Python's types have, and templates may call.
#pragma once

#include <string>

#include "template/value.h"

namespace hierarchos::jinja {

using MethodBody = Value (*)(const Value& self, Arguments& arguments);
MethodBody text_method(const std::string& name);  // of str; null when there is none

// A method bound to its object, or an attribute such as (5).real; missing when there is none of this name.
Value method(const Value& self, const std::string& name);
// Methods that would change a list or a dict, which the sandbox keeps from templates.
bool is_mutating(const Value& self, const std::string& name);

}  // namespace hierarchos::jinja
