#include "template/arguments.h"

#include <algorithm>

namespace hierarchos::jinja {

Values bind(const char* function, Arguments& arguments, std::initializer_list<const char*> parameters, size_t required,
            size_t named_from) {
  if (arguments.positional.size() > parameters.size())
    type_error("{}() takes at most {} arguments ({} given)", function, parameters.size(), arguments.positional.size());
  Values out = std::move(arguments.positional);
  out.resize(parameters.size());
  for (auto& [name, value] : arguments.named) {
    const auto* at = std::find(parameters.begin() + named_from, parameters.end(), name);
    if (at == parameters.end()) type_error("{}() got an unexpected keyword argument '{}'", function, name);
    Value& place = out[static_cast<size_t>(at - parameters.begin())];
    if (!place.missing()) type_error("{}() got multiple values for argument '{}'", function, name);
    place = std::move(value);
  }
  for (size_t i = 0; i < required; ++i)
    if (out[i].missing()) type_error("{}() missing required argument '{}'", function, parameters.begin()[i]);
  return out;
}

int64_t integer_or(const Value& v, int64_t fallback) {
  if (v.missing()) return fallback;
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is_integral()) type_error("'{}' object cannot be interpreted as an integer", type_name(v));
  if (v.is(Type::BigInt)) fail("OverflowError", "Python int too large to convert to C ssize_t");
  return v.as_int();
}

bool truth_or(const Value& v, bool fallback) { return v.missing() ? fallback : truthy(v); }

const std::string& text_of(const Value& v, const char* what) {
  if (!v.is_text()) type_error("{} must be str, not {}", what, type_name(v));
  return v.str();
}

}  // namespace hierarchos::jinja
