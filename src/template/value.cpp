#include "template/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "template/loop.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

constexpr size_t kIndexedDict = 8;

int deepest(const Values& values) {
  int depth = 0;
  for (const Value& v : values) depth = std::max(depth, v.depth());
  return depth + 1;
}

int deepest(const std::vector<std::pair<Value, Value>>& items) {
  int depth = 0;
  for (const auto& [key, value] : items) depth = std::max({depth, key.depth(), value.depth()});
  return depth + 1;
}

}  // namespace

void Object::charge_to_meter(size_t bytes, int depth) {
  depth_ = depth;
  Meter* meter = Meter::current();
  if (meter == nullptr) return;
  if (depth > meter->limits().depth) limit_error("values are nested more than {} deep", meter->limits().depth);
  meter->allocate(bytes);
  meter_ = meter;
  bytes_ += bytes;
}

Text::Text(std::string v, bool is_markup) : Object(64 + v.size()), utf8(std::move(v)), markup(is_markup) {
  length = text::length(utf8);
}

Sequence::Sequence(Values v) : Object(64 + v.size() * sizeof(Value), deepest(v)), items(std::move(v)) {}

Cycler::Cycler(Values v) : Object(64 + v.size() * sizeof(Value), deepest(v)), items(std::move(v)) {}

Dict::Dict(std::vector<std::pair<Value, Value>> v) : Object(96 + v.size() * 2 * sizeof(Value), deepest(v)) {
  items.reserve(v.size());
  for (auto& [key, value] : v) {
    const size_t hash = hash_value(key);  // even where there is nothing to compare with: lists are refused
    static_cast<void>(hash);
    Value* old = nullptr;
    if (!index_.empty()) {
      const auto at = index_.find(key);
      if (at != index_.end()) old = &items[at->second].second;
    } else {
      for (auto& item : items)
        if (SameKey()(item.first, key)) old = &item.second;
    }
    if (old != nullptr) {
      *old = std::move(value);
      continue;
    }
    items.emplace_back(std::move(key), std::move(value));
    if (!index_.empty()) index_.emplace(items.back().first, items.size() - 1);
    if (index_.empty() && items.size() > kIndexedDict)
      for (size_t i = 0; i < items.size(); ++i) index_.emplace(items[i].first, i);
  }
}

const Value* Dict::find(const Value& key) const {
  hash_value(key);
  if (!index_.empty()) {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &items[at->second].second;
  }
  for (const auto& item : items)
    if (SameKey()(item.first, key)) return &item.second;
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (!index_.empty()) return find(Value::text(std::string(key)));
  for (const auto& item : items)
    if (item.first.is_text() && item.first.str() == key) return &item.second;
  return nullptr;
}

RangeObject::RangeObject(int64_t b, int64_t e, int64_t s) : begin(b), end(e), step(s), length(0) {
  constexpr int64_t most = int64_t{1} << 61;  // so that no difference leaves 64 bits
  for (const int64_t v : {b, e, s})
    if (v > most || v < -most) fail("OverflowError", "a range reaches too far");
  if (s > 0 && e > b) length = (e - b - 1) / s + 1;
  if (s < 0 && e < b) length = (b - e - 1) / -s + 1;
}

Value View::at(size_t i) const {
  const auto& [key, value] = dict.as_dict().items[i];
  if (kind == Kind::OfKeys) return key;
  if (kind == Kind::OfValues) return value;
  return Value::tuple({key, value});
}

std::optional<Value> Iterator::next() {
  if (!next_) return std::nullopt;
  if (running_) value_error("generator already executing");
  if (Meter* meter = Meter::current()) meter->step();
  running_ = true;
  std::optional<Value> item;
  try {
    item = next_();
  } catch (...) {
    running_ = false;
    next_ = nullptr;
    throw;
  }
  running_ = false;
  if (!item) next_ = nullptr;
  return item;
}

Namespace::Namespace(std::vector<std::pair<Value, Value>> v) : Tracked(96 + v.size() * 3 * sizeof(Value)) {
  items_ = std::move(Dict(std::move(v)).items);
  for (size_t i = 0; i < items_.size(); ++i)
    if (items_[i].first.is_text()) index_.emplace(items_[i].first.str(), i);
}

const Value* Namespace::find(const std::string& name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &items_[at->second].second;
}

void Namespace::set(const std::string& name, Value value) {
  if (const auto at = index_.find(name); at != index_.end()) {
    items_[at->second].second = std::move(value);
    return;
  }
  charge_to_meter(3 * sizeof(Value), depth());
  items_.emplace_back(Value::text(name), std::move(value));
  index_.emplace(name, items_.size() - 1);
}

Value Value::boolean(bool v) {
  Value out(Type::Bool);
  out.bool_ = v;
  return out;
}

Value Value::integer(int64_t v) {
  Value out(Type::Int);
  out.int_ = v;
  return out;
}

Value Value::integer(BigInt v) {
  if (const auto small = v.small()) return integer(*small);
  if (v.digits() > 4300) value_error("an integer has more than 4300 digits");
  return object(Type::BigInt, std::make_shared<BigIntObject>(std::move(v)));
}

Value Value::number(double v) {
  Value out(Type::Float);
  out.float_ = v;
  return out;
}

Value Value::text(std::string v, bool markup) {
  check_text_size(v.size());
  return object(Type::Str, std::make_shared<Text>(std::move(v), markup));
}

Value Value::bytes(std::string v) {
  check_text_size(v.size());
  return object(Type::Bytes, std::make_shared<Text>(std::move(v), false));
}

Value Value::list(Values items) { return object(Type::List, std::make_shared<Sequence>(std::move(items))); }
Value Value::tuple(Values items) { return object(Type::Tuple, std::make_shared<Sequence>(std::move(items))); }
Value Value::dict(std::vector<std::pair<Value, Value>> items) {
  return object(Type::Dict, std::make_shared<Dict>(std::move(items)));
}

Value Value::undefined(std::string message, bool insecure) {
  return object(Type::Undefined, std::make_shared<UndefinedObject>(std::move(message), insecure));
}

Value Value::undefined_name(std::string_view name) { return undefined(fmt::format("'{}' is undefined", name)); }

bool Value::is_markup() const { return is(Type::Str) && get<Text>().markup; }
const std::string& Value::str() const { return get<Text>().utf8; }
const Values& Value::items() const { return get<Sequence>().items; }

std::string type_name(const Value& v) {
  switch (v.type()) {
    case Type::Missing:
      return "missing";
    case Type::Undefined:
      return "Undefined";
    case Type::None:
      return "NoneType";
    case Type::Bool:
      return "bool";
    case Type::Int:
    case Type::BigInt:
      return "int";
    case Type::Float:
      return "float";
    case Type::Str:
      return v.is_markup() ? "Markup" : "str";
    case Type::Bytes:
      return "bytes";
    case Type::List:
      return "list";
    case Type::Tuple:
      return "tuple";
    case Type::Dict:
      return "dict";
    case Type::Range:
      return "range";
    case Type::View:
      return v.get<View>().kind == View::Kind::OfKeys     ? "dict_keys"
             : v.get<View>().kind == View::Kind::OfValues ? "dict_values"
                                                          : "dict_items";
    case Type::Iterator:
      return v.get<Iterator>().name();
    case Type::Namespace:
      return "TemplateNamespace";
    case Type::Function:
      return "function";
    case Type::Macro:
      return "Macro";
    case Type::Loop:
      return "LoopContext";
    case Type::Cycler:
      return "Cycler";
    case Type::Joiner:
      return "Joiner";
    case Type::Self:
      return "TemplateReference";
    case Type::Block:
      return "BlockReference";
  }
  return "object";
}

std::string described(const Value& v) { return v.is_none() ? "'None'" : "'" + type_name(v) + " object'"; }

void fail_undefined(const Value& v) {
  const auto& object = v.get<UndefinedObject>();
  fail(object.insecure ? "SecurityError" : "UndefinedError", "{}", object.message);
}

bool truthy(const Value& v) {
  switch (v.type()) {
    case Type::Missing:
    case Type::Undefined:
    case Type::None:
      return false;
    case Type::Bool:
      return v.as_bool();
    case Type::Int:
      return v.as_int() != 0;
    case Type::Float:
      return v.as_float() != 0;
    case Type::Str:
    case Type::Bytes:
    case Type::List:
    case Type::Tuple:
    case Type::Dict:
    case Type::Range:
    case Type::View:
    case Type::Loop:
      return *length(v) != 0;
    default:
      return true;
  }
}

bool callable(const Value& v) {
  // An undefined value, too, has a method for being called: one that fails.
  return v.is(Type::Function) || v.is(Type::Macro) || v.is(Type::Loop) || v.is(Type::Joiner) || v.is(Type::Block) ||
         v.is_undefined();
}

std::optional<int64_t> length(const Value& v) {
  switch (v.type()) {
    case Type::Undefined:
      return 0;
    case Type::Str:
      return static_cast<int64_t>(v.text_object().length);
    case Type::Bytes:
      return static_cast<int64_t>(v.str().size());
    case Type::List:
    case Type::Tuple:
      return static_cast<int64_t>(v.items().size());
    case Type::Dict:
      return static_cast<int64_t>(v.as_dict().items.size());
    case Type::Range:
      return v.get<RangeObject>().length;
    case Type::View:
      return static_cast<int64_t>(v.get<View>().dict.as_dict().items.size());
    case Type::Loop:
      return v.get<Loop>().length();
    default:
      return std::nullopt;
  }
}

BigInt big(const Value& v) { return v.is(Type::BigInt) ? v.get<BigIntObject>().value : BigInt(v.as_int()); }

double to_double(const Value& v) {
  if (v.is(Type::Float)) return v.as_float();
  if (!v.is(Type::BigInt)) return static_cast<double>(v.as_int());
  const double value = v.get<BigIntObject>().value.to_double();
  if (std::isinf(value)) fail("OverflowError", "int too large to convert to float");
  return value;
}

std::shared_ptr<Iterator> iterate(const Value& v) {
  auto out = try_iterate(v);
  if (!out) type_error("'{}' object is not iterable", type_name(v));
  return out;
}

namespace {

std::shared_ptr<Iterator> counted(const Value& v, const char* name, std::function<Value(size_t)> at) {
  const auto end = static_cast<size_t>(*length(v));
  size_t i = 0;
  return std::make_shared<Iterator>(
      [i, end, at = std::move(at)]() mutable -> std::optional<Value> {
        if (i == end) return std::nullopt;
        return at(i++);
      },
      v.depth(), name);
}

std::shared_ptr<Iterator> characters(const Value& v) {
  size_t at = 0;
  return std::make_shared<Iterator>(
      [v, at]() mutable -> std::optional<Value> {
        const std::string& s = v.str();
        if (at == s.size()) return std::nullopt;
        const size_t begin = at;
        text::next(s, at);
        return Value::text(s.substr(begin, at - begin));  // of a Markup, too, iteration gives plain texts
      },
      v.depth(), "str_iterator");
}

}  // namespace

std::shared_ptr<Iterator> try_iterate(const Value& v) {
  switch (v.type()) {
    case Type::Undefined:
      return std::make_shared<Iterator>([]() -> std::optional<Value> { return std::nullopt; }, 1, "generator");
    case Type::Str:
      return characters(v);
    case Type::Bytes:
      return counted(v, "bytes_iterator",
                     [v](size_t i) { return Value::integer(static_cast<unsigned char>(v.str()[i])); });
    case Type::List:
      return counted(v, "list_iterator", [v](size_t i) { return v.items()[i]; });
    case Type::Tuple:
      return counted(v, "tuple_iterator", [v](size_t i) { return v.items()[i]; });
    case Type::Dict:
      return counted(v, "dict_keyiterator", [v](size_t i) { return v.as_dict().items[i].first; });
    case Type::Range:
      return counted(v, "range_iterator",
                     [v](size_t i) { return Value::integer(v.get<RangeObject>().at(static_cast<int64_t>(i))); });
    case Type::View:
      return counted(v, "dict_itemiterator", [v](size_t i) { return v.get<View>().at(i); });
    case Type::Iterator:
      return v.share<Iterator>();
    default:
      return nullptr;
  }
}

Values to_values(const Value& v) {
  if (v.is(Type::List) || v.is(Type::Tuple)) {
    charge(v.items().size() * sizeof(Value));
    return v.items();
  }
  Values out;
  const auto items = iterate(v);
  while (std::optional<Value> item = items->next()) out.push_back(std::move(*item));
  return out;
}

}  // namespace hierarchos::jinja
