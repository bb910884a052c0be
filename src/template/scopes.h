// Which variable a name means. Jinja2 decides that before it renders, and so does this: a name that a scope assigns
// anywhere is that scope's own from its beginning; loops, macros and blocks have scopes, conditions have not.
#pragma once

#include "template/ast.h"

namespace hierarchos::jinja {

// Fills places and scopes in. Throws SyntaxFailure for unknown filters and tests, too, but where a condition may keep
// them from being reached.
void resolve_names(Syntax& syntax);

}  // namespace hierarchos::jinja
