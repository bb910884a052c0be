// x.name, x[key], x[a:b].
#include <algorithm>
#include <array>

#include "template/interpreter.h"
#include "template/methods.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

// Names that every object of Python's has, and that no template may touch.
bool is_internal(const std::string& name) {
  static constexpr std::array kNames = {
      "__class__",        "__doc__",      "__dir__",      "__eq__",       "__format__", "__ge__",
      "__getattribute__", "__getstate__", "__gt__",       "__hash__",     "__init__",   "__init_subclass__",
      "__le__",           "__lt__",       "__ne__",       "__new__",      "__reduce__", "__reduce_ex__",
      "__repr__",         "__setattr__",  "__delattr__",  "__sizeof__",   "__str__",    "__subclasshook__",
      "__len__",          "__iter__",     "__getitem__",  "__contains__", "__add__",    "__mul__",
      "__dict__",         "__module__",   "__globals__",  "__code__",     "__call__",   "__func__",
      "__self__",         "__name__",     "__qualname__", "__builtins__"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Value insecure(const Value& v, const std::string& name) {
  return Value::undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(v)), true);
}

Value no_attribute(const Value& v, const std::string& name) {
  return Value::undefined(fmt::format("{} has no attribute '{}'", described(v), name));
}

Value no_element(const Value& v, const Value& key) {
  if (key.is_text()) return no_attribute(v, key.str());
  const std::string object = described(v);
  return Value::undefined(
      fmt::format("{} has no element {}", std::string_view(object).substr(1, object.size() - 2),
                  key.is_integral() && !key.is(Type::BigInt) ? std::to_string(key.as_int()) : type_name(key)));
}

// The attribute itself, if there is one.
Value own_attribute(const Value& v, const std::string& name) {
  switch (v.type()) {
    case Type::Namespace:
      if (const Value* found = v.get<Namespace>().find(name)) return *found;
      return {};
    case Type::Loop: {
      Value found = v.get<Loop>().attribute(name);
      if (!found.missing()) return found;
      break;
    }
    case Type::Macro:
      return v.get<Macro>().attribute(name);
    case Type::Block:
      if (name == "name") return Value::text(v.get<BlockReference>().name);
      if (name == "super")
        return Value::undefined(fmt::format("there is no parent block called '{}'.", v.get<BlockReference>().name));
      return {};
    case Type::Tuple:
      if (v.get<Sequence>().group && name == "grouper") return v.items()[0];
      if (v.get<Sequence>().group && name == "list") return v.items()[1];
      break;
    default:
      break;
  }
  return method(v, name);
}

std::optional<int64_t> index_of(const Value& key) {
  if (key.is(Type::Int) || key.is(Type::Bool)) return key.as_int();
  return std::nullopt;
}

// The item, missing when Python would raise a TypeError or a LookupError.
Value own_item(const Value& v, const Value& key) {
  if (v.is(Type::Dict)) {
    if (key.is(Type::List) || key.is(Type::Dict) || key.is(Type::View)) return {};
    const Value* found = v.as_dict().find(key);
    return found != nullptr ? *found : Value();
  }
  const std::optional<int64_t> asked = index_of(key);
  const bool sequence = v.is_text() || v.is(Type::Bytes) || v.is(Type::List) || v.is(Type::Tuple) || v.is(Type::Range);
  if (!asked || !sequence) return {};
  const int64_t size = *length(v);
  const int64_t i = *asked < 0 ? *asked + size : *asked;
  if (i < 0 || i >= size) return {};
  if (v.is_text()) return Value::text(text::slice(v.str(), i, 1, 1, v.text_object().ascii()), v.is_markup());
  if (v.is(Type::Bytes)) return Value::integer(static_cast<unsigned char>(v.str()[static_cast<size_t>(i)]));
  if (v.is(Type::Range)) return Value::integer(v.get<RangeObject>().at(i));
  return v.items()[static_cast<size_t>(i)];
}

int64_t slice_index(const Value& v, int64_t fallback) {
  if (v.is_none() || v.missing()) return fallback;
  if (v.is(Type::BigInt)) return big(v).negative() ? INT64_MIN : INT64_MAX;
  if (!v.is_integral()) type_error("slice indices must be integers or None or have an __index__ method");
  return v.as_int();
}

}  // namespace

Value get_attribute(const Value& v, const std::string& name) {
  if (v.is_undefined()) fail_undefined(v);
  if (is_internal(name)) return insecure(v, name);
  Value found = own_attribute(v, name);
  if (!found.missing()) return found;
  if (is_mutating(v, name)) return insecure(v, name);
  if (v.is(Type::Dict)) {
    if (const Value* item = v.as_dict().find(name)) return *item;
  }
  if (v.is(Type::Self)) return Value::object(Type::Block, std::make_shared<BlockReference>(name));
  return no_attribute(v, name);
}

Value get_item(const Value& v, const Value& key) {
  if (v.is_undefined()) fail_undefined(v);
  Value found = own_item(v, key);
  if (!found.missing()) return found;
  if (v.is(Type::Self) && key.is_text()) return Value::object(Type::Block, std::make_shared<BlockReference>(key.str()));
  if (key.is_text()) {
    if (is_internal(key.str()) || is_mutating(v, key.str())) return insecure(v, key.str());
    found = own_attribute(v, key.str());
    if (!found.missing()) return found;
  }
  return no_element(v, key);
}

bool has_attribute(const Value& v, const std::string& name) {
  return is_internal(name) || is_mutating(v, name) || !own_attribute(v, name).missing();
}

Value get_slice(const Value& v, const Value& begin, const Value& end, const Value& step_value) {
  if (v.is_undefined()) fail_undefined(v);
  if (v.is(Type::Dict)) type_error("unhashable type: 'slice'");
  const bool sequence = v.is_text() || v.is(Type::Bytes) || v.is(Type::List) || v.is(Type::Tuple) || v.is(Type::Range);
  if (!sequence) type_error("'{}' object is not subscriptable", type_name(v));
  const int64_t size = *length(v);
  const int64_t step = slice_index(step_value, 1);
  if (step == 0) value_error("slice step cannot be zero");
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
  const auto clamp = [&](const Value& index, int64_t fallback) {
    int64_t i = slice_index(index, fallback);
    if (index.is_none() || index.missing()) return fallback;
    if (i < 0) i = i < -size ? low : i + size;
    return std::clamp(i, low, high);
  };
  const int64_t from = clamp(begin, step < 0 ? high : low), to = clamp(end, step < 0 ? low : high);
  const RangeObject range(from, to, step);
  if (v.is_text())
    return Value::text(text::slice(v.str(), from, step, range.length, v.text_object().ascii()), v.is_markup());
  if (v.is(Type::Range)) {
    const auto& r = v.get<RangeObject>();
    int64_t new_step = 0;
    if (__builtin_mul_overflow(r.step, step, &new_step)) fail("OverflowError", "a range reaches too far");
    return Value::object(Type::Range, std::make_shared<RangeObject>(r.at(from), r.at(to), new_step));
  }
  if (v.is(Type::Bytes)) {
    std::string out;
    for (int64_t i = 0; i < range.length; ++i) out += v.str()[static_cast<size_t>(range.at(i))];
    return Value::bytes(std::move(out));
  }
  Values out;
  out.reserve(static_cast<size_t>(range.length));
  for (int64_t i = 0; i < range.length; ++i) out.push_back(v.items()[static_cast<size_t>(range.at(i))]);
  return v.is(Type::List) ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

}  // namespace hierarchos::jinja
