// Tokens to syntax tree: Jinja2's grammar with the tags `break`, `continue` and `generation`.
#pragma once

#include <string_view>

#include "template/ast.h"
#include "template/lexer.h"

namespace hierarchos::jinja {

// Throws SyntaxFailure. Names are not resolved yet.
Syntax parse(std::string_view source, const Limits& limits);

}  // namespace hierarchos::jinja
