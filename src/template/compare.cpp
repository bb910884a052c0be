// Equality, order, hashes and containment, as Python's.
#include <algorithm>
#include <cmath>
#include <functional>

#include "template/text.h"
#include "template/value.h"

namespace hierarchos::jinja {
namespace {

std::optional<int> compare_numbers(const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->is(Type::BigInt)) charge(v->get<BigIntObject>().value.digits() * 16);
  if (a.is(Type::Float) || b.is(Type::Float)) {
    const double x = a.is(Type::Float) ? a.as_float() : 0, y = b.is(Type::Float) ? b.as_float() : 0;
    if (std::isnan(x) || std::isnan(y)) return std::nullopt;
    if (a.is(Type::Float) && b.is(Type::Float)) return x < y ? -1 : x > y ? 1 : 0;
    // An integer beside a float: exactly, without rounding the integer.
    const double f = a.is(Type::Float) ? x : y;
    const int sign = a.is(Type::Float) ? 1 : -1;  // of "float compared with integer"
    if (std::isinf(f)) return f > 0 ? sign : -sign;
    const int whole = BigInt::compare(BigInt::truncate(f), big(a.is(Type::Float) ? b : a));
    if (whole != 0) return sign * whole;
    const double fraction = f - std::trunc(f);
    return fraction > 0 ? sign : fraction < 0 ? -sign : 0;
  }
  if (a.is(Type::BigInt) || b.is(Type::BigInt)) return BigInt::compare(big(a), big(b));
  return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const auto& item) {
    const Value* other = b.find(item.first);
    return other != nullptr && SameKey()(item.second, *other);
  });
}

bool equal_ranges(const RangeObject& a, const RangeObject& b) {
  return a.length == b.length && (a.length == 0 || (a.begin == b.begin && (a.length == 1 || a.step == b.step)));
}

void visit() {
  if (Meter* meter = Meter::current()) meter->step();
}

}  // namespace

bool identical(const Value& a, const Value& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::None:
      return true;
    case Type::Bool:
      return a.as_bool() == b.as_bool();
    // Equal small numbers and texts are mostly one object in Python; templates compare with literals.
    case Type::Int:
      return a.as_int() == b.as_int();
    case Type::Float:
      return a.as_float() == b.as_float() || (std::isnan(a.as_float()) && std::isnan(b.as_float()));
    case Type::Str:
      return a.identity() == b.identity() || a.str() == b.str();
    default:
      return a.identity() == b.identity();
  }
}

bool equal(const Value& a, const Value& b) {
  visit();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::Undefined:
    case Type::None:
      return true;
    case Type::Str:
    case Type::Bytes:
      charge(a.str().size());
      return a.str() == b.str();
    case Type::List:
    case Type::Tuple:
      return a.identity() == b.identity() ||
             std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), SameKey());
    case Type::Dict:
      return a.identity() == b.identity() || equal_dicts(a.as_dict(), b.as_dict());
    case Type::Range:
      return equal_ranges(a.get<RangeObject>(), b.get<RangeObject>());
    default:
      return a.identity() == b.identity();
  }
}

std::optional<int> compare(const Value& a, const Value& b, const char* operation) {
  visit();
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.type() == b.type()) {
    if (a.is_text() || a.is(Type::Bytes)) {
      charge(std::min(a.str().size(), b.str().size()));
      const int order = a.str().compare(b.str());  // UTF-8 sorts as its code points do
      return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    if (a.is(Type::List) || a.is(Type::Tuple)) {
      const Values &x = a.items(), &y = b.items();
      size_t i = 0;
      while (i < std::min(x.size(), y.size()) && SameKey()(x[i], y[i])) ++i;
      if (i < std::min(x.size(), y.size())) return compare(x[i], y[i], operation);
      return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
    }
  }
  type_error("'{}' not supported between instances of '{}' and '{}'", operation, type_name(a), type_name(b));
}

bool less(const Value& a, const Value& b) { return compare(a, b, "<") == -1; }

size_t hash_value(const Value& v) {
  visit();
  switch (v.type()) {
    case Type::None:
      return 1;
    case Type::Bool:
    case Type::Int:
      return std::hash<int64_t>()(v.as_int());
    case Type::BigInt:
      return std::hash<std::string>()(v.get<BigIntObject>().value.text());
    case Type::Float: {
      const double f = v.as_float();
      if (std::isfinite(f) && f == std::trunc(f)) return hash_value(Value::integer(BigInt::truncate(f)));
      return std::hash<double>()(f);
    }
    case Type::Str:
    case Type::Bytes:
      charge(v.str().size());
      return std::hash<std::string>()(v.str());
    case Type::Tuple: {
      size_t h = 7;
      for (const Value& item : v.items()) h = h * 1'000'003 + hash_value(item);
      return h;
    }
    case Type::Undefined:
      return 2;
    case Type::Range:
      return std::hash<int64_t>()(v.get<RangeObject>().length);
    case Type::List:
    case Type::Dict:
    case Type::View:
      type_error("unhashable type: '{}'", type_name(v));
    default:
      return std::hash<const void*>()(v.identity());
  }
}

bool contains(const Value& container, const Value& item) {
  switch (container.type()) {
    case Type::Str:
      if (!item.is_text()) type_error("'in <string>' requires string as left operand, not {}", type_name(item));
      return text::find(container.str(), item.str()) != std::string::npos;
    case Type::Dict:
      return container.as_dict().find(item) != nullptr;
    case Type::View:
      if (container.get<View>().kind == View::Kind::OfKeys)
        return container.get<View>().dict.as_dict().find(item) != nullptr;
      break;
    case Type::Range:
      if (item.is(Type::Int) || item.is(Type::Bool)) {
        const auto& range = container.get<RangeObject>();
        const int64_t i = item.as_int();
        if (range.step > 0 ? i < range.begin || i >= range.end : i > range.begin || i <= range.end) return false;
        return (i - range.begin) % range.step == 0;
      }
      break;
    default:
      break;
  }
  const auto items = try_iterate(container);
  if (!items) type_error("argument of type '{}' is not iterable", type_name(container));
  while (std::optional<Value> each = items->next())
    if (SameKey()(*each, item)) return true;
  return false;
}

}  // namespace hierarchos::jinja
