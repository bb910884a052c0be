// Macros, and the bodies of call blocks, as values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "template/value.h"

namespace hierarchos::jinja {

struct MacroCode;
class Environment;

struct Macro : Object {
  Macro(const MacroCode& c, std::shared_ptr<Environment> e) : Object(96), code(&c), closure(std::move(e)) {}
  const MacroCode* code;
  std::shared_ptr<Environment> closure;  // the variables around its definition
  std::string repr() const;
  // An attribute's value; missing when there is none of this name.
  Value attribute(std::string_view name) const;
};

}  // namespace hierarchos::jinja
