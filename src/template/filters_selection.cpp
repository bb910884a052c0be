// Filters that apply another filter or a test to each item. They work when their result is read, as Python's
// generators.
#include "template/arguments.h"
#include "template/filters.h"
#include "template/interpreter.h"

namespace hierarchos::jinja {
namespace {

int deepest(const Value& input, const Arguments& arguments) {
  int depth = input.depth();
  for (const Value& v : arguments.positional) depth = std::max(depth, v.depth());
  for (const auto& [name, v] : arguments.named) depth = std::max(depth, v.depth());
  return depth;
}

using Apply = std::function<Value(const Value&)>;

// What `map` does to one item.
Apply mapping(Interpreter& interpreter, Arguments arguments) {
  if (arguments.positional.empty()) {
    Value attribute, fallback;
    bool given = false;
    std::string unexpected;
    for (auto& [name, value] : arguments.named) {
      if (name == "attribute") {
        attribute = std::move(value);
        given = true;
      } else if (name == "default") {
        fallback = std::move(value);
      } else if (unexpected.empty()) {
        unexpected = name;
      }
    }
    if (!given) fail("FilterArgumentError", "map requires a filter argument");
    if (!unexpected.empty()) fail("FilterArgumentError", "Unexpected keyword argument '{}'", unexpected);
    return AttributeGetter(attribute, false, fallback);
  }
  const std::string name = text_of(arguments.positional[0], "a filter's name");
  arguments.positional.erase(arguments.positional.begin());
  return [&interpreter, name, arguments = std::move(arguments)](const Value& item) {
    Arguments copy = arguments;
    return interpreter.filter(name, item, copy);
  };
}

Value map(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  const int depth = deepest(input, arguments);
  Apply apply;
  std::shared_ptr<Iterator> source;
  auto next = [&interpreter, input, arguments = std::move(arguments), apply, source]() mutable -> std::optional<Value> {
    if (!source) {
      if (!truthy(input)) return std::nullopt;
      apply = mapping(interpreter, std::move(arguments));
      source = iterate(input);
    }
    const std::optional<Value> item = source->next();
    if (!item) return std::nullopt;
    return apply(*item);
  };
  return Value::object(Type::Iterator, std::make_shared<Iterator>(std::move(next), depth, "generator"));
}

using Decide = std::function<bool(const Value&)>;

Decide decision(Interpreter& interpreter, Arguments arguments, bool by_attribute) {
  std::optional<AttributeGetter> get;
  auto& positional = arguments.positional;
  if (by_attribute) {
    if (positional.empty()) fail("FilterArgumentError", "Missing parameter for attribute name");
    get.emplace(positional[0], false);
    positional.erase(positional.begin());
  }
  const auto subject = [get](const Value& item) { return get ? (*get)(item) : item; };
  if (positional.empty()) return [subject](const Value& item) { return truthy(subject(item)); };
  const std::string name = text_of(positional[0], "a test's name");
  positional.erase(positional.begin());
  return [&interpreter, subject, name, arguments = std::move(arguments)](const Value& item) {
    Arguments copy = arguments;
    return interpreter.test(name, subject(item), copy);
  };
}

template <bool Wanted, bool ByAttribute>
Value choose(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  const int depth = deepest(input, arguments);
  Decide decide;
  std::shared_ptr<Iterator> source;
  auto next = [&interpreter, input, arguments = std::move(arguments), decide,
               source]() mutable -> std::optional<Value> {
    if (!source) {
      if (!truthy(input)) return std::nullopt;
      decide = decision(interpreter, std::move(arguments), ByAttribute);
      source = iterate(input);
    }
    while (std::optional<Value> item = source->next())
      if (decide(*item) == Wanted) return item;
    return std::nullopt;
  };
  return Value::object(Type::Iterator, std::make_shared<Iterator>(std::move(next), depth, "generator"));
}

}  // namespace

const FilterTable& selection_filters() {
  static const FilterTable kTable = {
      {"map", map},
      {"reject", choose<false, false>},
      {"rejectattr", choose<false, true>},
      {"select", choose<true, false>},
      {"selectattr", choose<true, true>},
  };
  return kTable;
}

}  // namespace hierarchos::jinja
