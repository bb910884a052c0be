// Expressions and calls.
#include <algorithm>

#include "template/filters.h"
#include "template/interpreter.h"
#include "template/interpreter_guards.h"
#include "template/print.h"

namespace hierarchos::jinja {

Value Interpreter::evaluate(const Expr& e, const EnvironmentPtr& env) {
  const Deeper deeper(*this);
  meter_.step();
  line_ = e.line;
  switch (e.kind) {
    case ExprKind::Const:
      return e.value;
    case ExprKind::Name:
    case ExprKind::NamespaceRef:
      return evaluate_name(e, env);
    case ExprKind::Tuple:
      return Value::tuple(evaluate_all(e.items, env));
    case ExprKind::List:
      return Value::list(evaluate_all(e.items, env));
    case ExprKind::Dict:
      return evaluate_dict(e, env);
    case ExprKind::Negative:
      return negative(evaluate(*e.items[0], env));
    case ExprKind::Positive:
      return positive(evaluate(*e.items[0], env));
    case ExprKind::Not:
      return Value::boolean(!truthy(evaluate(*e.items[0], env)));
    case ExprKind::And: {
      Value left = evaluate(*e.items[0], env);
      return truthy(left) ? evaluate(*e.items[1], env) : left;
    }
    case ExprKind::Or: {
      Value left = evaluate(*e.items[0], env);
      return truthy(left) ? left : evaluate(*e.items[1], env);
    }
    case ExprKind::Concat:
      return evaluate_concat(e, env);
    case ExprKind::Compare:
      return evaluate_compare(e, env);
    case ExprKind::Conditional:
      return evaluate_conditional(e, env);
    case ExprKind::Attribute:
      return get_attribute(evaluate(*e.items[0], env), e.text);
    case ExprKind::Item: {
      const Value object = evaluate(*e.items[0], env);
      return get_item(object, evaluate(*e.items[1], env));
    }
    case ExprKind::Slice:
      return evaluate_slice(e, env);
    case ExprKind::Call:
      return evaluate_call(e, env, {});
    case ExprKind::Filter:
    case ExprKind::Test:
      return evaluate_filter(e, env);
    default:
      return evaluate_binary(e, env);
  }
}

Value Interpreter::evaluate_name(const Expr& e, const EnvironmentPtr& env) {
  const Value& v = env->at(e.place);
  return v.missing() ? Value::undefined_name(e.text) : v;
}

Values Interpreter::evaluate_all(const std::vector<ExprPtr>& exprs, const EnvironmentPtr& env) {
  Values out;
  out.reserve(exprs.size());
  for (const ExprPtr& e : exprs) out.push_back(evaluate(*e, env));
  return out;
}

Value Interpreter::evaluate_binary(const Expr& e, const EnvironmentPtr& env) {
  const Value left = evaluate(*e.items[0], env);
  const Value right = evaluate(*e.items[1], env);
  line_ = e.line;
  return binary_operation(e.kind, left, right);
}

Value Interpreter::evaluate_dict(const Expr& e, const EnvironmentPtr& env) {
  std::vector<std::pair<Value, Value>> items;
  for (size_t i = 0; i < e.items.size(); i += 2) {
    Value key = evaluate(*e.items[i], env);
    items.emplace_back(std::move(key), evaluate(*e.items[i + 1], env));
  }
  return Value::dict(std::move(items));
}

Value Interpreter::evaluate_slice(const Expr& e, const EnvironmentPtr& env) {
  const Value object = evaluate(*e.items[0], env);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i)
    if (e.items[i + 1]) bounds[i] = evaluate(*e.items[i + 1], env);
  return get_slice(object, bounds[0], bounds[1], bounds[2]);
}

Value Interpreter::evaluate_concat(const Expr& e, const EnvironmentPtr& env) {
  const Values parts = evaluate_all(e.items, env);
  const bool markup =
      escapes(e.escape) && std::any_of(parts.begin(), parts.end(), [](const Value& v) { return v.is_markup(); });
  std::string out;
  for (const Value& part : parts) {
    out += markup ? escape(part).str() : str(part);
    check_text_size(out.size());
  }
  return Value::text(std::move(out), markup);
}

Value Interpreter::evaluate_conditional(const Expr& e, const EnvironmentPtr& env) {
  if (truthy(evaluate(*e.items[0], env))) return evaluate(*e.items[1], env);
  if (e.items[2]) return evaluate(*e.items[2], env);
  return Value::undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.", e.line));
}

namespace {

bool compared(CompareOp op, const Value& a, const Value& b) {
  std::optional<int> order;
  switch (op) {
    case CompareOp::Equal:
      return equal(a, b);
    case CompareOp::NotEqual:
      return !equal(a, b);
    case CompareOp::In:
      return contains(b, a);
    case CompareOp::NotIn:
      return !contains(b, a);
    case CompareOp::Less:
      return compare(a, b, "<") == -1;
    case CompareOp::Greater:
      return compare(a, b, ">") == 1;
    case CompareOp::LessEqual:
      order = compare(a, b, "<=");
      return order && *order <= 0;
    case CompareOp::GreaterEqual:
      order = compare(a, b, ">=");
      return order && *order >= 0;
  }
  return false;
}

}  // namespace

Value Interpreter::evaluate_compare(const Expr& e, const EnvironmentPtr& env) {
  Value left = evaluate(*e.items[0], env);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    Value right = evaluate(*e.items[i + 1], env);
    if (!compared(e.ops[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Arguments Interpreter::evaluate_arguments(const Expr& e, const EnvironmentPtr& env) {
  Arguments out;
  out.positional = evaluate_all(e.positional, env);
  for (const auto& [name, value] : e.named) out.named.emplace_back(name, evaluate(*value, env));
  if (e.more_positional) {
    const Value more = evaluate(*e.more_positional, env);
    if (!try_iterate(more)) type_error("argument after * must be an iterable, not {}", type_name(more));
    for (Value& v : to_values(more)) out.positional.push_back(std::move(v));
  }
  if (e.more_named) {
    const Value more = evaluate(*e.more_named, env);
    if (!more.is(Type::Dict)) type_error("argument after ** must be a mapping, not {}", type_name(more));
    for (const auto& [key, value] : more.as_dict().items) {
      if (!key.is_text()) type_error("keywords must be strings");
      for (const auto& other : e.named)
        if (other.first == key.str()) type_error("got multiple values for keyword argument '{}'", key.str());
      out.named.emplace_back(key.str(), value);
    }
  }
  return out;
}

Value Interpreter::evaluate_filter(const Expr& e, const EnvironmentPtr& env) {
  const Value input = e.items[0] ? evaluate(*e.items[0], env) : block_text_;
  Arguments arguments = evaluate_arguments(e, env);
  line_ = e.line;
  if (e.kind == ExprKind::Filter) return filter(e.text, input, arguments);
  return Value::boolean(test(e.text, input, arguments));
}

Value Interpreter::filter(const std::string& name, const Value& input, Arguments& arguments) {
  const FilterFunction found = find_filter(name);
  if (found == nullptr) fail("TemplateRuntimeError", "No filter named '{}' found.", name);
  return found(*this, input, arguments);
}

bool Interpreter::test(const std::string& name, const Value& input, Arguments& arguments) {
  const TestFunction found = find_test(name);
  if (found == nullptr) fail("TemplateRuntimeError", "No test named '{}' found.", name);
  return found(*this, input, arguments);
}

Value Interpreter::evaluate_call(const Expr& e, const EnvironmentPtr& env, const Value& caller) {
  const Value callee = evaluate(*e.items[0], env);
  Arguments arguments = evaluate_arguments(e, env);
  if (!caller.missing()) {
    charge(arguments.named.size() * 16);
    for (const auto& other : arguments.named)
      if (other.first == "caller") type_error("got multiple values for keyword argument 'caller'");
    arguments.named.emplace_back("caller", caller);
  }
  line_ = e.line;
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  switch (callee.type()) {
    case Type::Undefined:
      fail_undefined(callee);
    case Type::Function:
      return callee.share<Function>()->body(*this, arguments);
    case Type::Macro:
      return call_macro(*callee.share<Macro>(), arguments);
    case Type::Loop: {
      if (!arguments.named.empty() || arguments.positional.size() != 1) type_error("loop() takes one argument");
      return callee.share<Loop>()->recurse(*this, arguments.positional[0]);
    }
    case Type::Joiner: {
      auto& joiner = callee.get<Joiner>();
      if (!arguments.named.empty() || !arguments.positional.empty()) type_error("a joiner takes no arguments");
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return Value::text("");
    }
    case Type::Block: {
      const std::string& name = callee.get<BlockReference>().name;
      const auto block = syntax_.blocks.find(name);
      if (block == syntax_.blocks.end())
        fail("UndefinedError", "'jinja2.runtime.TemplateReference object' has no attribute '{}'", name);
      return captured(block_text(*block->second, nullptr));
    }
    default:
      type_error("'{}' object is not callable", type_name(callee));
  }
}

void Interpreter::bind_parameters(const Macro& macro, Arguments& arguments, Environment& env) const {
  const MacroCode& code = *macro.code;
  Values& positional = arguments.positional;
  Keywords& named = arguments.named;
  const auto take = [&](const std::string& name) {
    charge(named.size() * 16);
    const auto at = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == name; });
    if (at == named.end()) return Value();
    Value v = std::move(at->second);
    named.erase(at);
    return v;
  };
  const size_t count = code.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const Expr& parameter = *code.parameters[i];
    env.at(parameter.place) = i < positional.size() ? std::move(positional[i]) : take(parameter.text);
  }
  if (code.uses_caller && !code.explicit_caller) {
    Value caller = take("caller");
    if (caller.missing() || caller.is_none()) caller = Value::undefined("No caller defined");
    env.values[static_cast<size_t>(code.caller)] = std::move(caller);
  }
  if (code.uses_kwargs) {
    std::vector<std::pair<Value, Value>> items;
    for (auto& [name, value] : named) items.emplace_back(Value::text(name), std::move(value));
    env.values[static_cast<size_t>(code.kwargs)] = Value::dict(std::move(items));
  } else if (!named.empty()) {
    type_error("macro '{}' takes no keyword argument '{}'", code.name, named[0].first);
  }
  if (code.uses_varargs) {
    Values rest;
    for (size_t i = count; i < positional.size(); ++i) rest.push_back(std::move(positional[i]));
    env.values[static_cast<size_t>(code.varargs)] = Value::tuple(std::move(rest));
  } else if (positional.size() > count) {
    type_error("macro '{}' takes not more than {} argument(s)", code.name, count);
  }
}

Value Interpreter::call_macro(const Macro& macro, Arguments& arguments) {
  const Call call(calls_, meter_.limits().depth);
  const int line = line_;
  const MacroCode& code = *macro.code;
  const EnvironmentPtr env = new_environment(code.function, macro.closure, macro.closure->locals);
  bind_parameters(macro, arguments, *env);
  enter(code.scope, env);
  const size_t without_default = code.parameters.size() - code.defaults.size();
  for (size_t i = 0; i < code.parameters.size(); ++i) {
    const Expr& parameter = *code.parameters[i];
    if (!env->at(parameter.place).missing()) continue;
    Value value = i < without_default ? Value::undefined(fmt::format("parameter '{}' was not provided", parameter.text))
                                      : evaluate(*code.defaults[i - without_default], env);
    env->at(parameter.place) = std::move(value);
  }
  std::string body;
  {
    const Capture capture(*this, body);
    execute(code.body, env);
  }
  release(env);
  line_ = line;
  return captured(std::move(body));
}

std::string Macro::repr() const { return code->name.empty() ? "<Macro anonymous>" : "<Macro '" + code->name + "'>"; }

Value Macro::attribute(std::string_view name) const {
  if (name == "name") return code->name.empty() ? Value::none() : Value::text(code->name);
  if (name == "arguments") {
    Values names;
    for (const ExprPtr& parameter : code->parameters) names.push_back(Value::text(parameter->text));
    return Value::tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::boolean(code->uses_kwargs);
  if (name == "catch_varargs") return Value::boolean(code->uses_varargs);
  if (name == "caller") return Value::boolean(code->uses_caller);
  if (name == "explicit_caller") return Value::boolean(code->explicit_caller);
  return {};
}

}  // namespace hierarchos::jinja
