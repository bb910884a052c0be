// Arithmetic, as Python's.
#include <cmath>

#include "template/format.h"
#include "template/interpreter.h"
#include "template/print.h"

namespace hierarchos::jinja {
namespace {

const char* symbol(ExprKind kind) {
  switch (kind) {
    case ExprKind::Add:
      return "+";
    case ExprKind::Subtract:
      return "-";
    case ExprKind::Multiply:
      return "*";
    case ExprKind::Divide:
      return "/";
    case ExprKind::FloorDivide:
      return "//";
    case ExprKind::Modulo:
      return "%";
    default:
      return "** or pow()";
  }
}

[[noreturn]] void unsupported(ExprKind kind, const Value& a, const Value& b) {
  type_error("unsupported operand type(s) for {}: '{}' and '{}'", symbol(kind), type_name(a), type_name(b));
}

// Long multiplication and division count as the work they are.
void charge_work(const BigInt& a, const BigInt& b) { charge(a.digits() * b.digits()); }

double quotient(const Value& a, const Value& b) {
  if (!truthy(b)) fail("ZeroDivisionError", "division by zero");
  constexpr int64_t exact = int64_t{1} << 53;
  const auto fits = [&](const Value& v) {
    return !v.is(Type::BigInt) && std::abs(v.as_int()) <= exact && v.as_int() != INT64_MIN;
  };
  if (fits(a) && fits(b)) return static_cast<double>(a.as_int()) / static_cast<double>(b.as_int());
  // Some forty digits of the quotient, with a mark where more would follow, round as the exact value does.
  BigInt numerator = big(a);
  const BigInt denominator = big(b);
  charge_work(numerator, denominator);
  const int64_t shift =
      std::max<int64_t>(0, 40 + static_cast<int64_t>(denominator.digits()) - static_cast<int64_t>(numerator.digits()));
  numerator = numerator * *BigInt::parse("1" + std::string(static_cast<size_t>(shift), '0'));
  const bool negative_result = numerator.negative() != denominator.negative();
  const BigInt::Division d = BigInt::divide(numerator.negative() ? -numerator : numerator,
                                            denominator.negative() ? -denominator : denominator);
  const std::string digits = d.quotient.text() + (d.remainder.zero() ? "0" : "1") + "e" + std::to_string(-shift - 1);
  const double value = std::strtod(digits.c_str(), nullptr);
  if (std::isinf(value)) fail("OverflowError", "integer division result too large for a float");
  return negative_result ? -value : value;
}

Value float_division(double a, double b, bool modulo) {
  if (b == 0) fail("ZeroDivisionError", "{}", modulo ? "float modulo" : "float floor division by zero");
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  if (modulo) return Value::number(mod);
  if (div == 0) return Value::number(std::copysign(0.0, a / b));
  const double floor = std::floor(div);
  return Value::number(div - floor > 0.5 ? floor + 1 : floor);
}

Value integer_division(const Value& a, const Value& b, bool modulo) {
  if (!truthy(b))
    fail("ZeroDivisionError", "{}", modulo ? "integer modulo by zero" : "integer division or modulo by zero");
  if (!a.is(Type::BigInt) && !b.is(Type::BigInt) && a.as_int() != INT64_MIN) {
    const int64_t x = a.as_int(), y = b.as_int();
    int64_t q = x / y, r = x % y;
    if (r != 0 && (r < 0) != (y < 0)) {
      --q;
      r += y;
    }
    return Value::integer(modulo ? r : q);
  }
  charge_work(big(a), big(b));
  BigInt::Division d = BigInt::divide(big(a), big(b));
  return Value::integer(std::move(modulo ? d.remainder : d.quotient));
}

Value float_power(double a, double b) {
  if (a == 0 && b < 0) fail("ZeroDivisionError", "0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    value_error("complex numbers are not supported");
  const double value = std::pow(a, b);
  if (std::isinf(value) && std::isfinite(a) && std::isfinite(b))
    fail("OverflowError", "(34, 'Numerical result out of range')");
  return Value::number(value);
}

Value integer_power(const Value& a, const Value& b) {
  BigInt base = big(a), exponent = big(b);
  if (exponent.negative()) return float_power(to_double(a), to_double(b));
  const bool grows = BigInt::compare(base, 1) > 0 || BigInt::compare(base, -1) < 0;
  if (!grows) {  // -1, 0, 1
    if (exponent.zero()) return Value::integer(1);
    return Value::integer(base.negative() && !exponent.odd() ? 1 : *base.small());
  }
  const auto times = exponent.small();
  const double digits = times ? static_cast<double>(*times) * (static_cast<double>(base.digits()) - 1) : HUGE_VAL;
  if (digits > 4300 || *times > 15000) value_error("an integer has more than 4300 digits");
  BigInt out = 1;
  for (int64_t n = *times; n > 0; n /= 2) {
    charge_work(base, base);
    if (n % 2 == 1) out = out * base;
    if (n > 1) base = base * base;
  }
  return Value::integer(std::move(out));
}

Value float_arithmetic(ExprKind kind, double a, double b) {
  switch (kind) {
    case ExprKind::Add:
      return Value::number(a + b);
    case ExprKind::Subtract:
      return Value::number(a - b);
    case ExprKind::Multiply:
      return Value::number(a * b);
    case ExprKind::Divide:
      if (b == 0) fail("ZeroDivisionError", "float division by zero");
      return Value::number(a / b);
    case ExprKind::FloorDivide:
      return float_division(a, b, false);
    case ExprKind::Modulo:
      return float_division(a, b, true);
    default:
      return float_power(a, b);
  }
}

Value integer_arithmetic(ExprKind kind, const Value& a, const Value& b) {
  const bool small = !a.is(Type::BigInt) && !b.is(Type::BigInt);
  int64_t result = 0;
  switch (kind) {
    case ExprKind::Add:
      if (small && !__builtin_add_overflow(a.as_int(), b.as_int(), &result)) return Value::integer(result);
      return Value::integer(big(a) + big(b));
    case ExprKind::Subtract:
      if (small && !__builtin_sub_overflow(a.as_int(), b.as_int(), &result)) return Value::integer(result);
      return Value::integer(big(a) - big(b));
    case ExprKind::Multiply:
      if (small && !__builtin_mul_overflow(a.as_int(), b.as_int(), &result)) return Value::integer(result);
      charge_work(big(a), big(b));
      return Value::integer(big(a) * big(b));
    case ExprKind::Divide:
      return Value::number(quotient(a, b));
    case ExprKind::FloorDivide:
      return integer_division(a, b, false);
    case ExprKind::Modulo:
      return integer_division(a, b, true);
    default:
      return integer_power(a, b);
  }
}

Value joined(const Value& a, const Value& b) {
  Values items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Type::List) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value add_sequences(const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    check_text_size(a.str().size() + b.str().size());
    if (!a.is_markup() && !b.is_markup()) return Value::text(a.str() + b.str());
    return Value::text(escape(a).str() + escape(b).str(), true);
  }
  if (a.type() == b.type() && (a.is(Type::List) || a.is(Type::Tuple))) return joined(a, b);
  if (a.is(Type::Bytes) && b.is(Type::Bytes)) return Value::bytes(a.str() + b.str());
  if (a.is_text() || a.is(Type::List) || a.is(Type::Tuple))
    type_error("can only concatenate {0} (not \"{1}\") to {0}", type_name(a), type_name(b));
  unsupported(ExprKind::Add, a, b);
}

Value repeat(const Value& sequence, const Value& count) {
  const int64_t times =
      count.is(Type::BigInt) ? (big(count).negative() ? 0 : INT64_MAX) : std::max<int64_t>(0, count.as_int());
  if (sequence.is_text() || sequence.is(Type::Bytes)) {
    const std::string& s = sequence.str();
    if (s.empty() || times == 0) return sequence.is_text() ? Value::text("", sequence.is_markup()) : Value::bytes("");
    check_text_size(times > INT32_MAX ? SIZE_MAX : s.size() * static_cast<size_t>(times));
    std::string out;
    out.reserve(s.size() * static_cast<size_t>(times));
    for (int64_t i = 0; i < times; ++i) out += s;
    return sequence.is_text() ? Value::text(std::move(out), sequence.is_markup()) : Value::bytes(std::move(out));
  }
  const Values& items = sequence.items();
  if (!items.empty() && times > 0)
    check_text_size(times > INT32_MAX ? SIZE_MAX : items.size() * static_cast<size_t>(times) * sizeof(Value));
  Values out;
  for (int64_t i = 0; i < times && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return sequence.is(Type::List) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

bool repeatable(const Value& v) { return v.is_text() || v.is(Type::Bytes) || v.is(Type::List) || v.is(Type::Tuple); }

}  // namespace

Value binary_operation(ExprKind kind, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is(Type::Float) || b.is(Type::Float)) return float_arithmetic(kind, to_double(a), to_double(b));
    return integer_arithmetic(kind, a, b);
  }
  if (kind == ExprKind::Modulo && a.is_text()) return percent_format(a, b);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (kind == ExprKind::Add) return add_sequences(a, b);
  if (kind == ExprKind::Multiply) {
    if (repeatable(a) && b.is_integral()) return repeat(a, b);
    if (repeatable(b) && a.is_integral()) return repeat(b, a);
    if (repeatable(a)) type_error("can't multiply sequence by non-int of type '{}'", type_name(b));
    if (repeatable(b)) type_error("can't multiply sequence by non-int of type '{}'", type_name(a));
  }
  unsupported(kind, a, b);
}

Value negative(const Value& v) {
  if (v.is_undefined()) fail_undefined(v);
  if (v.is(Type::Float)) return Value::number(-v.as_float());
  if (!v.is_integral()) type_error("bad operand type for unary -: '{}'", type_name(v));
  return Value::integer(-big(v));
}

Value positive(const Value& v) {
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is_number()) type_error("bad operand type for unary +: '{}'", type_name(v));
  return v.is(Type::Bool) ? Value::integer(v.as_int()) : v;
}

Value absolute(const Value& v) {
  if (!v.is_number()) type_error("bad operand type for abs(): '{}'", type_name(v));
  if (v.is(Type::Float)) return Value::number(std::fabs(v.as_float()));
  return big(v).negative() ? negative(v) : positive(v);
}

}  // namespace hierarchos::jinja
