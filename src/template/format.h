// Python's two ways of formatting: "%d" % x and "{:d}".format(x).
#pragma once

#include <string>
#include <string_view>

#include "template/value.h"

namespace hierarchos::jinja {

// text % argument. A Markup escapes what it takes in.
Value percent_format(const Value& format, const Value& argument);
// text.format(…), with fields looked up as the sandbox allows.
Value brace_format(const Value& format, const Arguments& arguments);
// format(v, spec).
std::string format_value(const Value& v, std::string_view spec);

// A float by one of the letters of C's printf, without the exponent's C quirks: Python's. `alternate`: keep the point.
std::string format_float(double v, char letter, int precision, bool alternate);

}  // namespace hierarchos::jinja
