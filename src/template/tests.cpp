// Tests, as in `x is odd`.
#include "template/arguments.h"
#include "template/filters.h"
#include "template/interpreter.h"
#include "template/print.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

template <bool (*F)(const Value&)>
bool of_value(Interpreter&, const Value& input, Arguments& arguments) {
  bind("test", arguments, {}, 0);
  return F(input);
}

bool leaves(const Value& v, int64_t divisor, int64_t rest) {
  return equal(binary_operation(ExprKind::Modulo, v, Value::integer(divisor)), Value::integer(rest));
}
bool odd(const Value& v) { return leaves(v, 2, 1); }
bool even(const Value& v) { return leaves(v, 2, 0); }
bool defined(const Value& v) { return !v.is_undefined(); }
bool undefined(const Value& v) { return v.is_undefined(); }
bool none(const Value& v) { return v.is_none(); }
bool boolean(const Value& v) { return v.is(Type::Bool); }
bool is_true(const Value& v) { return v.is(Type::Bool) && v.as_bool(); }
bool is_false(const Value& v) { return v.is(Type::Bool) && !v.as_bool(); }
bool integer(const Value& v) { return v.is(Type::Int) || v.is(Type::BigInt); }
bool floating(const Value& v) { return v.is(Type::Float); }
bool number(const Value& v) { return v.is_number(); }
bool lower(const Value& v) { return text::is_cased_as(str(v), unicode::kLower); }
bool upper(const Value& v) { return text::is_cased_as(str(v), unicode::kUpper); }
bool is_string(const Value& v) { return v.is_text(); }
bool mapping(const Value& v) { return v.is(Type::Dict); }
bool escaped(const Value& v) { return v.is_markup(); }
bool sequence(const Value& v) { return length(v).has_value() && !v.is(Type::View) && !v.is(Type::Loop); }
bool iterable(const Value& v) { return try_iterate(v) != nullptr || v.is(Type::Loop) || v.is(Type::Self); }

Value other(Arguments& arguments, const char* name) { return bind("test", arguments, {name}, 1)[0]; }

bool divisible(Interpreter&, const Value& input, Arguments& arguments) {
  return equal(binary_operation(ExprKind::Modulo, input, other(arguments, "num")), Value::integer(0));
}
bool same_as(Interpreter&, const Value& input, Arguments& arguments) {
  return identical(input, other(arguments, "other"));
}
bool in(Interpreter&, const Value& input, Arguments& arguments) { return contains(other(arguments, "seq"), input); }
bool is_filter(Interpreter&, const Value& input, Arguments& arguments) {
  bind("test", arguments, {}, 0);
  hash_value(input);
  return input.is_text() && find_filter(input.str()) != nullptr;
}
bool is_test(Interpreter&, const Value& input, Arguments& arguments) {
  bind("test", arguments, {}, 0);
  hash_value(input);
  return input.is_text() && find_test(input.str()) != nullptr;
}
bool equals(Interpreter&, const Value& input, Arguments& arguments) { return equal(input, other(arguments, "b")); }
bool differs(Interpreter&, const Value& input, Arguments& arguments) { return !equal(input, other(arguments, "b")); }
bool is_less(Interpreter&, const Value& input, Arguments& arguments) {
  return compare(input, other(arguments, "b"), "<") == -1;
}
bool is_greater(Interpreter&, const Value& input, Arguments& arguments) {
  return compare(input, other(arguments, "b"), ">") == 1;
}
bool at_most(Interpreter&, const Value& input, Arguments& arguments) {
  const auto order = compare(input, other(arguments, "b"), "<=");
  return order && *order <= 0;
}
bool at_least(Interpreter&, const Value& input, Arguments& arguments) {
  const auto order = compare(input, other(arguments, "b"), ">=");
  return order && *order >= 0;
}

}  // namespace

TestFunction find_test(const std::string& name) {
  static const std::map<std::string, TestFunction> kTests = {
      {"odd", of_value<odd>},
      {"even", of_value<even>},
      {"divisibleby", divisible},
      {"defined", of_value<defined>},
      {"undefined", of_value<undefined>},
      {"filter", is_filter},
      {"test", is_test},
      {"none", of_value<none>},
      {"boolean", of_value<boolean>},
      {"false", of_value<is_false>},
      {"true", of_value<is_true>},
      {"integer", of_value<integer>},
      {"float", of_value<floating>},
      {"lower", of_value<lower>},
      {"upper", of_value<upper>},
      {"string", of_value<is_string>},
      {"mapping", of_value<mapping>},
      {"number", of_value<number>},
      {"sequence", of_value<sequence>},
      {"iterable", of_value<iterable>},
      {"callable", of_value<callable>},
      {"sameas", same_as},
      {"escaped", of_value<escaped>},
      {"in", in},
      {"==", equals},
      {"eq", equals},
      {"equalto", equals},
      {"!=", differs},
      {"ne", differs},
      {">", is_greater},
      {"gt", is_greater},
      {"greaterthan", is_greater},
      {"ge", at_least},
      {">=", at_least},
      {"<", is_less},
      {"lt", is_less},
      {"lessthan", is_less},
      {"<=", at_most},
      {"le", at_most},
  };
  const auto found = kTests.find(name);
  return found == kTests.end() ? nullptr : found->second;
}

}  // namespace hierarchos::jinja
