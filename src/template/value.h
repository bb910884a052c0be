// Values of the template language: what Python's would be. They are immutable but for namespaces and the state of
// iterators, so copies share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "template/error.h"
#include "template/integer.h"
#include "template/meter.h"

namespace hierarchos::jinja {

enum class Type : uint8_t {
  Missing,  // no value at all: a name that was never assigned, an argument that was not given
  Undefined,
  None,
  Bool,
  Int,
  BigInt,  // never one that fits Int
  Float,
  Str,
  Bytes,
  List,
  Tuple,
  Dict,
  Range,
  View,      // dict.keys(), .values(), .items()
  Iterator,  // what Python calls a generator: passed through once
  Namespace,
  Function,  // built in, or a method bound to its object
  Macro,
  Loop,
  Cycler,
  Joiner,
  Self,   // the variable `self`
  Block,  // self.name
};

// What lies behind a value that is not a plain number. Charged to the meter of its time.
class Object {
 public:
  explicit Object(size_t bytes = 64, int depth = 1) { charge_to_meter(bytes, depth); }
  virtual ~Object() {
    if (meter_ != nullptr) meter_->release(bytes_);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  int depth() const { return depth_; }

 protected:
  void charge_to_meter(size_t bytes, int depth);

 private:
  Meter* meter_ = nullptr;
  size_t bytes_ = 0;
  int depth_ = 1;
};

struct Text;
struct Sequence;
struct Dict;
struct RangeObject;
struct View;
class Iterator;
class Namespace;
struct Function;
struct Macro;
class Loop;
struct Cycler;
struct Joiner;
struct BlockReference;

class Value {
 public:
  Value() = default;  // missing
  static Value none() { return Value(Type::None); }
  static Value boolean(bool v);
  static Value integer(int64_t v);
  static Value integer(BigInt v);
  static Value number(double v);
  static Value text(std::string v, bool markup = false);
  static Value bytes(std::string v);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(std::vector<std::pair<Value, Value>> items);  // of equal keys the first, with the last's value
  template <typename T>
  static Value object(Type type, std::shared_ptr<T> o) {
    Value v(type);
    v.object_ = std::move(o);
    return v;
  }
  // `message` says why there is no value; insecure: it may not be looked at.
  static Value undefined(std::string message, bool insecure = false);
  static Value undefined_name(std::string_view name);

  Type type() const { return type_; }
  bool is(Type t) const { return type_ == t; }
  bool missing() const { return is(Type::Missing); }
  bool is_undefined() const { return is(Type::Undefined); }
  bool is_none() const { return is(Type::None); }
  bool is_text() const { return is(Type::Str); }
  bool is_integral() const { return is(Type::Int) || is(Type::BigInt) || is(Type::Bool); }
  bool is_number() const { return is_integral() || is(Type::Float); }
  bool is_markup() const;

  bool as_bool() const { return bool_; }
  int64_t as_int() const { return is(Type::Bool) ? static_cast<int64_t>(bool_) : int_; }
  double as_float() const { return float_; }
  const std::string& str() const;  // of Str and Bytes
  const Text& text_object() const { return get<Text>(); }
  const std::vector<Value>& items() const;  // of List and Tuple
  const Dict& as_dict() const { return get<Dict>(); }
  const Object* identity() const { return object_.get(); }
  int depth() const { return object_ ? object_->depth() : 1; }
  template <typename T>
  T& get() const {
    return *static_cast<T*>(object_.get());
  }
  template <typename T>
  std::shared_ptr<T> share() const {
    return std::static_pointer_cast<T>(object_);
  }

 private:
  explicit Value(Type type) : type_(type) {}

  Type type_ = Type::Missing;
  union {
    bool bool_;
    int64_t int_ = 0;
    double float_;
  };
  std::shared_ptr<Object> object_;
};

using Values = std::vector<Value>;

// UTF-8 that may hold surrogates (a literal '\ud800'), which an output may not.
struct Text : Object {
  explicit Text(std::string v, bool is_markup);
  std::string utf8;
  size_t length = 0;    // in code points
  bool markup = false;  // markupsafe.Markup: safe to stand in HTML
  bool ascii() const { return length == utf8.size(); }
};

struct BigIntObject : Object {
  explicit BigIntObject(BigInt v) : value(std::move(v)) {}
  BigInt value;
};

struct UndefinedObject : Object {
  UndefinedObject(std::string m, bool i) : message(std::move(m)), insecure(i) {}
  std::string message;
  bool insecure;
};

struct Sequence : Object {
  explicit Sequence(Values v);
  Values items;
  bool group = false;  // a tuple with the names `grouper` and `list`
};

size_t hash_value(const Value& v);  // TypeError for what Python cannot hash
bool equal(const Value& a, const Value& b);
bool identical(const Value& a, const Value& b);  // Python's `is`

struct HashValue {
  size_t operator()(const Value& v) const { return hash_value(v); }
};
struct SameKey {
  bool operator()(const Value& a, const Value& b) const { return identical(a, b) || equal(a, b); }
};

struct Dict : Object {
  explicit Dict(std::vector<std::pair<Value, Value>> v);
  std::vector<std::pair<Value, Value>> items;
  const Value* find(const Value& key) const;  // null when it is not there
  const Value* find(std::string_view key) const;

 private:
  std::unordered_map<Value, size_t, HashValue, SameKey> index_;  // of dicts with more than a few items
};

struct RangeObject : Object {
  RangeObject(int64_t b, int64_t e, int64_t s);
  int64_t begin, end, step;
  int64_t length;
  int64_t at(int64_t i) const { return begin + i * step; }
};

struct View : Object {
  enum class Kind : uint8_t { OfKeys, OfValues, OfItems };
  View(Kind k, Value d) : Object(64, d.depth() + 1), kind(k), dict(std::move(d)) {}
  Kind kind;
  Value dict;
  Value at(size_t i) const;
};

// Goes through values once. `next` gives nothing at the end, and ever after.
class Iterator : public Object {
 public:
  using Next = std::function<std::optional<Value>()>;
  // `depth` counts the iterators and values that `next` draws from; `name` is what Python prints.
  Iterator(Next next, int depth, const char* name) : Object(96, depth + 1), name_(name), next_(std::move(next)) {}
  std::optional<Value> next();
  const char* name() const { return name_; }

 private:
  const char* name_;
  Next next_;
  bool running_ = false;
};

using Keywords = std::vector<std::pair<std::string, Value>>;

struct Arguments {
  Values positional;
  Keywords named;
};

class Interpreter;

struct Function : Object {
  using Body = std::function<Value(Interpreter&, Arguments&)>;
  Function(std::string n, Body b, Value s = {})
      : Object(96, s.depth() + 1), name(std::move(n)), body(std::move(b)), self(std::move(s)) {}
  std::string name;
  Body body;
  Value self;  // of a method
};

struct Cycler : Object {
  explicit Cycler(Values v);
  Values items;
  size_t position = 0;
};

struct Joiner : Object {
  explicit Joiner(Value s) : Object(64, s.depth() + 1), separator(std::move(s)) {}
  Value separator;
  bool used = false;
};

struct BlockReference : Object {
  explicit BlockReference(std::string n) : name(std::move(n)) {}
  std::string name;
};

// What can take part in a circle. The rendering keeps each until its end, then empties them all.
class Tracked : public Object {
 public:
  using Object::Object;
  virtual void clear() = 0;
};

class Namespace : public Tracked {
 public:
  explicit Namespace(std::vector<std::pair<Value, Value>> v);
  void clear() override { items_.clear(); }
  const Value* find(const std::string& name) const;
  void set(const std::string& name, Value value);
  const std::vector<std::pair<Value, Value>>& items() const { return items_; }

 private:
  std::vector<std::pair<Value, Value>> items_;
  std::unordered_map<std::string, size_t> index_;  // of names; keys may be others, which no template can reach
};

// Python's name of the type: "str", "NoneType".
std::string type_name(const Value& v);
// How messages about missing attributes name an object: "'dict object'", "'None'".
std::string described(const Value& v);
bool truthy(const Value& v);
bool callable(const Value& v);
// < 0, 0, > 0; nullopt for NaN. TypeError naming `operation` for what cannot be ordered.
std::optional<int> compare(const Value& a, const Value& b, const char* operation);
bool less(const Value& a, const Value& b);
bool contains(const Value& container, const Value& item);  // Python's `in`
std::optional<int64_t> length(const Value& v);             // nullopt where Python's len() fails

[[noreturn]] void fail_undefined(const Value& v);
BigInt big(const Value& v);        // of an integral value
double to_double(const Value& v);  // of a number; OverflowError beyond the range

// The values in turn; nullptr for what cannot be iterated.
std::shared_ptr<Iterator> try_iterate(const Value& v);
std::shared_ptr<Iterator> iterate(const Value& v);  // TypeError instead
Values to_values(const Value& v);                   // all of them

}  // namespace hierarchos::jinja
