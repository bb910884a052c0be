// Arguments of filters, methods and functions, bound to parameters.
#pragma once

#include <initializer_list>
#include <string>

#include "template/value.h"

namespace hierarchos::jinja {

// The arguments in the order of `parameters`, missing where none is given; the first `required` must be. TypeError for
// any that does not fit. `named_from`: parameters before this one cannot be given by name.
Values bind(const char* function, Arguments& arguments, std::initializer_list<const char*> parameters, size_t required,
            size_t named_from = 0);

// A bound argument, or the fallback where it is missing. TypeError when it is of another kind.
int64_t integer_or(const Value& v, int64_t fallback);
bool truth_or(const Value& v, bool fallback);
const std::string& text_of(const Value& v, const char* what);

}  // namespace hierarchos::jinja
