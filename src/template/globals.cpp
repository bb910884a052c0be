// The functions that every chat template has.
#include "template/arguments.h"
#include "template/interpreter.h"
#include "template/print.h"

namespace hierarchos::jinja {
namespace {

constexpr int64_t kLongestRange = 100'000;

Value range(Interpreter&, Arguments& arguments) {
  if (!arguments.named.empty()) type_error("range() takes no keyword arguments");
  const Values& a = arguments.positional;
  if (a.empty() || a.size() > 3) type_error("range expected 1 to 3 arguments, got {}", a.size());
  const int64_t begin = a.size() == 1 ? 0 : integer_or(a[0], 0);
  const int64_t end = integer_or(a[a.size() == 1 ? 0 : 1], 0), step = a.size() == 3 ? integer_or(a[2], 1) : 1;
  if (step == 0) value_error("range() arg 3 must not be zero");
  auto out = std::make_shared<RangeObject>(begin, end, step);
  if (out->length > kLongestRange)
    fail("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kLongestRange);
  return Value::object(Type::Range, std::move(out));
}

// The items of dict(…) and namespace(…).
std::vector<std::pair<Value, Value>> dict_items(const char* function, Arguments& arguments) {
  std::vector<std::pair<Value, Value>> items;
  if (arguments.positional.size() > 1)
    type_error("{} expected at most 1 argument, got {}", function, arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Type::Dict)) {
      items = source.as_dict().items;
    } else {
      const auto pairs = iterate(source);
      while (const std::optional<Value> pair = pairs->next()) {
        const auto parts = try_iterate(*pair) ? to_values(*pair) : Values();
        if (parts.size() != 2) type_error("{}() needs a dict or pairs of a key and a value", function);
        items.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (auto& [name, value] : arguments.named) items.emplace_back(Value::text(name), std::move(value));
  return items;
}

Value dict(Interpreter&, Arguments& arguments) { return Value::dict(dict_items("dict", arguments)); }

Value make_namespace(Interpreter& interpreter, Arguments& arguments) {
  auto items = dict_items("namespace", arguments);
  for (const auto& item : items)
    if (item.first.is_text() && item.first.str().substr(0, 1) == "_")
      fail("SecurityError",
           "Chat templates cannot store underscore-prefixed attributes on a namespace, but got {}. Please rename the "
           "attribute.",
           repr(item.first));
  return Value::object(Type::Namespace, interpreter.track(std::make_shared<Namespace>(std::move(items))));
}

Value cycler(Interpreter&, Arguments& arguments) {
  if (!arguments.named.empty()) type_error("cycler() got an unexpected keyword argument");
  if (arguments.positional.empty()) fail("RuntimeError", "at least one item has to be provided");
  return Value::object(Type::Cycler, std::make_shared<Cycler>(std::move(arguments.positional)));
}

Value joiner(Interpreter&, Arguments& arguments) {
  const Values a = bind("joiner", arguments, {"sep"}, 0);
  return Value::object(Type::Joiner, std::make_shared<Joiner>(a[0].missing() ? Value::text(", ") : a[0]));
}

Value raise_exception(Interpreter&, Arguments& arguments) {
  const Values a = bind("raise_exception", arguments, {"message"}, 1);
  throw Failure{"TemplateError", str(a[0])};
}

Value strftime_now(Interpreter& interpreter, Arguments& arguments) {
  const Values a = bind("strftime_now", arguments, {"format"}, 1);
  return Value::text(format_time(interpreter.clock()(), text_of(a[0], "strftime() argument 1")));
}

Value lipsum(Interpreter&, Arguments&) {
  fail("Unsupported", "lipsum() makes up text at random and is not supported; write the text into the template");
}

}  // namespace

Locals global_functions() {
  using GlobalBody = Value (*)(Interpreter&, Arguments&);
  static constexpr std::pair<const char*, GlobalBody> kFunctions[] = {{"range", range},
                                                                      {"dict", dict},
                                                                      {"lipsum", lipsum},
                                                                      {"cycler", cycler},
                                                                      {"joiner", joiner},
                                                                      {"namespace", make_namespace},
                                                                      {"raise_exception", raise_exception},
                                                                      {"strftime_now", strftime_now}};
  Locals out;
  for (const auto& [name, body] : kFunctions)
    out[name] = Value::object(Type::Function, std::make_shared<Function>(name, body));
  return out;
}

}  // namespace hierarchos::jinja
