#include "template/methods.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "template/arguments.h"
#include "template/interpreter.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

template <View::Kind K>
Value view(const Value& self, Arguments& arguments) {
  bind("dict method", arguments, {}, 0);
  return Value::object(Type::View, std::make_shared<View>(K, self));
}

Value dict_get(const Value& self, Arguments& arguments) {
  const Values a = bind("get", arguments, {"key", "default"}, 1, 2);
  const Value* found = self.as_dict().find(a[0]);
  return found != nullptr ? *found : a[1].missing() ? Value::none() : a[1];
}

Value copy(const Value& self, Arguments& arguments) {
  bind("copy", arguments, {}, 0);
  return self.is(Type::Dict) ? Value::dict(self.as_dict().items) : Value::list(self.items());
}

Value dict_fromkeys(const Value&, Arguments& arguments) {
  const Values a = bind("fromkeys", arguments, {"iterable", "value"}, 1, 2);
  std::vector<std::pair<Value, Value>> items;
  for (Value& key : to_values(a[0])) items.emplace_back(std::move(key), a[1].missing() ? Value::none() : a[1]);
  return Value::dict(std::move(items));
}

Value sequence_index(const Value& self, Arguments& arguments) {
  const Values a = bind("index", arguments, {"value", "start", "stop"}, 1, 3);
  const int64_t size = *length(self);
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? (i < -size ? 0 : i + size) : i, 0, size); };
  const int64_t begin = clamp(integer_or(a[1], 0)), end = clamp(integer_or(a[2], size));
  const Values items = to_values(self);
  for (int64_t i = begin; i < end; ++i)
    if (SameKey()(items[static_cast<size_t>(i)], a[0])) return Value::integer(i);
  value_error("the value is not in the {}", type_name(self));
}

Value sequence_count(const Value& self, Arguments& arguments) {
  const Values a = bind("count", arguments, {"value"}, 1, 1);
  const Values items = to_values(self);
  return Value::integer(std::count_if(items.begin(), items.end(), [&](const Value& v) { return SameKey()(v, a[0]); }));
}

Value bit_length(const Value& self, Arguments& arguments) {
  bind("bit_length", arguments, {}, 0);
  const BigInt v = big(self);
  charge(v.digits() * v.digits() * 4);
  return Value::integer(v.zero() ? 0 : static_cast<int64_t>((v.negative() ? -v : v).text(2).size()));
}

Value is_integer(const Value& self, Arguments& arguments) {
  bind("is_integer", arguments, {}, 0);
  return Value::boolean(std::isfinite(self.as_float()) && self.as_float() == std::trunc(self.as_float()));
}

Value conjugate(const Value& self, Arguments& arguments) {
  bind("conjugate", arguments, {}, 0);
  return positive(self);
}

Value bytes_decode(const Value& self, Arguments& arguments) {
  const Values a = bind("decode", arguments, {"encoding", "errors"}, 0);
  if (!text::valid(self.str(), false)) fail("UnicodeDecodeError", "the bytes are not UTF-8");
  return Value::text(self.str());
}

Value cycler_next(const Value& self, Arguments& arguments) {
  bind("next", arguments, {}, 0);
  auto& cycler = self.get<Cycler>();
  const Value out = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return out;
}

Value cycler_reset(const Value& self, Arguments& arguments) {
  bind("reset", arguments, {}, 0);
  self.get<Cycler>().position = 0;
  return Value::none();
}

Value loop_cycle(const Value& self, Arguments& arguments) { return self.get<Loop>().cycle(arguments); }
Value loop_changed(const Value& self, Arguments& arguments) { return self.get<Loop>().changed(arguments); }

struct Method {
  Type type;
  const char* name;
  MethodBody body;
};

constexpr std::array kMethods = {
    Method{Type::Dict, "keys", view<View::Kind::OfKeys>},
    Method{Type::Dict, "values", view<View::Kind::OfValues>},
    Method{Type::Dict, "items", view<View::Kind::OfItems>},
    Method{Type::Dict, "get", dict_get},
    Method{Type::Dict, "copy", copy},
    Method{Type::Dict, "fromkeys", dict_fromkeys},
    Method{Type::List, "copy", copy},
    Method{Type::List, "index", sequence_index},
    Method{Type::List, "count", sequence_count},
    Method{Type::Tuple, "index", sequence_index},
    Method{Type::Tuple, "count", sequence_count},
    Method{Type::Range, "index", sequence_index},
    Method{Type::Range, "count", sequence_count},
    Method{Type::Int, "bit_length", bit_length},
    Method{Type::BigInt, "bit_length", bit_length},
    Method{Type::Bool, "bit_length", bit_length},
    Method{Type::Int, "conjugate", conjugate},
    Method{Type::BigInt, "conjugate", conjugate},
    Method{Type::Bool, "conjugate", conjugate},
    Method{Type::Float, "conjugate", conjugate},
    Method{Type::Float, "is_integer", is_integer},
    Method{Type::Bytes, "decode", bytes_decode},
    Method{Type::Cycler, "next", cycler_next},
    Method{Type::Cycler, "reset", cycler_reset},
    Method{Type::Loop, "cycle", loop_cycle},
    Method{Type::Loop, "changed", loop_changed},
};

// Attributes that are values, not methods.
Value plain_attribute(const Value& self, const std::string& name) {
  switch (self.type()) {
    case Type::Bool:
    case Type::Int:
    case Type::BigInt:
      if (name == "real" || name == "numerator") return positive(self);
      if (name == "imag") return Value::integer(0);
      if (name == "denominator") return Value::integer(1);
      break;
    case Type::Float:
      if (name == "real") return self;
      if (name == "imag") return Value::number(0);
      break;
    case Type::Range:
      if (name == "start") return Value::integer(self.get<RangeObject>().begin);
      if (name == "stop") return Value::integer(self.get<RangeObject>().end);
      if (name == "step") return Value::integer(self.get<RangeObject>().step);
      break;
    case Type::Cycler:
      if (name == "current") return self.get<Cycler>().items[self.get<Cycler>().position];
      if (name == "items") return Value::tuple(self.get<Cycler>().items);
      if (name == "pos") return Value::integer(static_cast<int64_t>(self.get<Cycler>().position));
      break;
    case Type::Joiner:
      if (name == "sep") return self.get<Joiner>().separator;
      if (name == "used") return Value::boolean(self.get<Joiner>().used);
      break;
    default:
      break;
  }
  return {};
}

MethodBody find_method(const Value& self, const std::string& name) {
  if (self.is_text()) return text_method(name);
  if (self.is(Type::Function) && self.get<Function>().name == "dict" && name == "fromkeys") return dict_fromkeys;
  const auto* found = std::find_if(kMethods.begin(), kMethods.end(),
                                   [&](const Method& m) { return m.type == self.type() && name == m.name; });
  return found == kMethods.end() ? nullptr : found->body;
}

}  // namespace

Value method(const Value& self, const std::string& name) {
  Value plain = plain_attribute(self, name);
  if (!plain.missing()) return plain;
  const MethodBody body = find_method(self, name);
  if (body == nullptr) return {};
  auto function = std::make_shared<Function>(
      name, [self, body](Interpreter&, Arguments& arguments) { return body(self, arguments); }, self);
  return Value::object(Type::Function, std::move(function));
}

bool is_mutating(const Value& self, const std::string& name) {
  static constexpr std::array kOfLists = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  static constexpr std::array kOfDicts = {"clear", "pop", "popitem", "setdefault", "update"};
  if (self.is(Type::List)) return std::find(kOfLists.begin(), kOfLists.end(), name) != kOfLists.end();
  if (self.is(Type::Dict)) return std::find(kOfDicts.begin(), kOfDicts.end(), name) != kOfDicts.end();
  return false;
}

}  // namespace hierarchos::jinja
