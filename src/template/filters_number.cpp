// Filters that make or change numbers.
#include <cmath>

#include "template/arguments.h"
#include "template/filters.h"
#include "template/format.h"
#include "template/interpreter.h"
#include "template/numbers.h"
#include "template/print.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

Value abs_filter(Interpreter&, const Value& input, Arguments& arguments) {
  bind("abs", arguments, {}, 0);
  return absolute(input);
}

Value float_filter(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("float", arguments, {"default"}, 0);
  if (input.is_undefined()) fail_undefined(input);
  const Value fallback = a[0].missing() ? Value::number(0) : a[0];
  if (input.is_number()) return Value::number(to_double(input));
  if (!input.is_text()) return fallback;
  const auto parsed = parse_float(input.str());
  return parsed ? Value::number(*parsed) : fallback;
}

Value whole(double v) {
  if (std::isinf(v)) fail("OverflowError", "cannot convert float infinity to integer");
  return Value::integer(BigInt::truncate(v));
}

Value int_filter(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("int", arguments, {"default", "base"}, 0);
  if (input.is_undefined()) fail_undefined(input);
  const Value fallback = a[0].missing() ? Value::integer(0) : a[0];
  if (input.is_integral()) return positive(input);
  if (input.is(Type::Float)) return std::isnan(input.as_float()) ? fallback : whole(input.as_float());
  if (!input.is_text()) return fallback;
  const int64_t base = integer_or(a[1], 10);
  if (auto parsed = parse_integer(input.str(), base)) return Value::integer(std::move(*parsed));
  const auto number = parse_float(input.str());
  if (!number || !std::isfinite(*number)) return fallback;
  return whole(*number);
}

// Half to even at a number of digits behind the point, which may be negative, of the exact value.
double round_float(double v, int64_t digits) {
  if (!std::isfinite(v) || v == 0 || digits > 323) return v;
  if (digits >= 0) return std::strtod(format_float(v, 'f', static_cast<int>(digits), false).c_str(), nullptr);
  const std::string scientific = format_float(std::fabs(v), 'e', 0, false);
  // With the exponent of the value itself, not of what it rounds to.
  const int64_t exponent = static_cast<int64_t>(std::floor(std::log10(std::fabs(v)) + 1e-12));
  if (exponent + digits < -1) return std::copysign(0.0, v);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  const double below = std::floor(std::fabs(v) / unit), rest = std::fabs(v) - below * unit;
  const bool up = rest > unit / 2 || (rest == unit / 2 && std::fmod(below, 2) != 0);
  return std::copysign((below + (up ? 1 : 0)) * unit, v);
}

Value round_integer(const Value& v, int64_t digits) {
  if (digits >= 0) return positive(v);
  if (-digits > 4300) return Value::integer(0);
  const BigInt unit = *BigInt::parse("1" + std::string(static_cast<size_t>(-digits), '0'));
  const BigInt::Division d = BigInt::divide(big(v), unit);
  const int half = BigInt::compare(d.remainder + d.remainder, unit);
  const bool up = half > 0 || (half == 0 && d.quotient.odd());
  return Value::integer((up ? d.quotient + BigInt(1) : d.quotient) * unit);
}

Value round_filter(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("round", arguments, {"precision", "method"}, 0);
  const std::string method = a[1].missing() ? "common" : str(a[1]);
  if (method != "common" && method != "ceil" && method != "floor")
    fail("FilterArgumentError", "method must be common, ceil or floor");
  if (!input.is_number()) type_error("type {} doesn't define __round__ method", type_name(input));
  const int64_t digits = integer_or(a[0], 0);
  if (method == "common") {
    if (input.is(Type::Float)) return Value::number(round_float(input.as_float(), digits));
    return round_integer(input, digits);
  }
  const Value power = binary_operation(ExprKind::Power, Value::integer(10), Value::integer(digits));
  const Value scaled = binary_operation(ExprKind::Multiply, input, power);
  Value result = scaled;
  if (scaled.is(Type::Float)) {
    if (std::isnan(scaled.as_float())) value_error("cannot convert float NaN to integer");
    result = whole(method == "ceil" ? std::ceil(scaled.as_float()) : std::floor(scaled.as_float()));
  }
  return binary_operation(ExprKind::Divide, result, power);
}

Value file_size(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("filesizeformat", arguments, {"binary"}, 0);
  if (input.is_undefined()) fail_undefined(input);
  const bool binary = truth_or(a[0], false);
  double bytes = 0;
  if (input.is_number()) {
    bytes = to_double(input);
  } else {
    const auto parsed = input.is_text() ? parse_float(input.str()) : std::nullopt;
    if (!parsed) value_error("filesizeformat needs a number");
    bytes = *parsed;
  }
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value::text("1 Byte");
  if (bytes < base) return Value::text(repr(whole(bytes)) + " Bytes");
  static constexpr const char* kPrefixes = "kMGTPEZY";
  double unit = base;
  const char* prefix = kPrefixes;
  for (;; ++prefix) {
    unit *= base;
    if (bytes < unit || prefix[1] == 0) break;
  }
  const char letter = binary && *prefix == 'k' ? 'K' : *prefix;
  return Value::text(format_float(base * bytes / unit, 'f', 1, false) + " " + letter + (binary ? "iB" : "B"));
}

}  // namespace

const FilterTable& number_filters() {
  static const FilterTable kTable = {
      {"abs", abs_filter}, {"filesizeformat", file_size}, {"float", float_filter},
      {"int", int_filter}, {"round", round_filter},
  };
  return kTable;
}

}  // namespace hierarchos::jinja
