// Statements.
#include <algorithm>

#include "template/interpreter.h"
#include "template/interpreter_guards.h"
#include "template/print.h"
#include "template/text.h"

namespace hierarchos::jinja {

Interpreter::Interpreter(const Syntax& syntax, const Value& variables, const Limits& limits, Clock clock)
    : syntax_(syntax), variables_(variables), meter_(limits), clock_(std::move(clock)), globals_(global_functions()) {}

Interpreter::~Interpreter() {
  // What holds itself lets go of itself. Nothing is destroyed deep in something else, since all are still held here.
  for (const auto& object : tracked_) object->clear();
}

std::string Interpreter::render() {
  const EnvironmentPtr env = new_environment(syntax_.function, nullptr, nullptr);
  if (syntax_.self >= 0) env->values[static_cast<size_t>(syntax_.self)] = Value::object<Object>(Type::Self, nullptr);
  enter(syntax_.scope, env);
  execute(syntax_.body, env);
  if (!text::valid(output_, false)) fail("UnicodeEncodeError", "the output has surrogates, which are no characters");
  return std::move(output_);
}

EnvironmentPtr Interpreter::new_environment(const FunctionCode& code, EnvironmentPtr parent,
                                            std::shared_ptr<const Locals> locals) {
  return track(std::make_shared<Environment>(code, std::move(parent), std::move(locals)));
}

// After its use: mostly nothing else holds it, and it can go at once.
void Interpreter::release(const std::shared_ptr<Tracked>& object) {
  constexpr long here_and_tracked = 2;
  if (object.use_count() > here_and_tracked) return;
  object->clear();
  if (!tracked_.empty() && tracked_.back() == object) tracked_.pop_back();
}

void Interpreter::enter(const Scope& scope, const EnvironmentPtr& env) {
  meter_.step(static_cast<int64_t>(scope.loads.size() / 4));
  for (const Load& load : scope.loads) {
    Value& place = env->values[static_cast<size_t>(load.index)];
    switch (load.kind) {
      case Load::Kind::Parameter:
        break;
      case Load::Kind::Resolve:
        place = resolve(load.name, *env);
        break;
      case Load::Kind::Alias:
        place = env->at(load.source);
        break;
      case Load::Kind::Undefined:
        place = Value();
        break;
    }
  }
}

void Interpreter::leave(const Scope& scope, const EnvironmentPtr& env) {
  for (const Load& load : scope.loads) env->values[static_cast<size_t>(load.index)] = Value();
}

Value Interpreter::resolve(const std::string& name, const Environment& env) const {
  if (env.locals) {
    const auto local = env.locals->find(name);
    if (local != env.locals->end()) return local->second;
  }
  const auto exported = exported_.find(name);
  if (exported != exported_.end()) return exported->second;
  if (const Value* given = variables_.as_dict().find(name)) return *given;
  const auto global = globals_.find(name);
  return global == globals_.end() ? Value() : global->second;
}

void Interpreter::write(std::string_view s) {
  charge(s.size());
  check_text_size(out_->size() + s.size());
  *out_ += s;
  if (out_ == &output_) output_length_ += text::length(s);
}

// What call and filter blocks give is written as it is, and so has to be a text.
void Interpreter::write_raw(const Value& v) {
  if (!v.is_text()) type_error("sequence item 0: expected str instance, {} found", type_name(v));
  write(v.str());
}

Interpreter::Flow Interpreter::execute(const Body& body, const EnvironmentPtr& env) {
  for (const StmtPtr& s : body) {
    const Flow flow = execute(*s, env);
    if (flow != Flow::Normal) return flow;
  }
  return Flow::Normal;
}

Interpreter::Flow Interpreter::execute(const Stmt& s, const EnvironmentPtr& env) {
  const Deeper deeper(*this);
  meter_.step();
  line_ = s.line;
  switch (s.kind) {
    case StmtKind::Text:
      write(s.text);
      break;
    case StmtKind::Output:
      execute_output(s, env);
      break;
    case StmtKind::Set:
      execute_set(s, env);
      break;
    case StmtKind::SetBlock:
      return execute_set_block(s, env);
    case StmtKind::If:
      return execute_if(s, env);
    case StmtKind::For:
      return execute_for(*s.loop, env);
    case StmtKind::Macro: {
      Value macro = Value::object(Type::Macro, std::make_shared<Macro>(*s.macro, env));
      if (s.exported) exported_[s.macro->name] = macro;
      env->at(s.place) = std::move(macro);
      break;
    }
    case StmtKind::CallBlock:
      execute_call_block(s, env);
      break;
    case StmtKind::Generation:
      execute_generation(s, env);
      break;
    case StmtKind::FilterBlock:
      return execute_filter_block(s, env);
    case StmtKind::With:
      return execute_with(s, env);
    case StmtKind::Autoescape:
      return execute_autoescape(s, env);
    case StmtKind::Block:
      execute_block(s, env);
      break;
    case StmtKind::Break:
      return Flow::Break;
    case StmtKind::Continue:
      return Flow::Continue;
    case StmtKind::Load:
      evaluate(*s.exprs[0], env);
      fail("Unsupported", "the tag '{}' needs another template, and a chat template stands alone", s.text);
  }
  return Flow::Normal;
}

void Interpreter::execute_output(const Stmt& s, const EnvironmentPtr& env) {
  for (const ExprPtr& e : s.exprs) {
    const Value v = evaluate(*e, env);
    if (escapes(s.escape))
      write(escape(v).str());
    else if (v.is_text())
      write(v.str());
    else
      write(str(v));
  }
}

Interpreter::Flow Interpreter::execute_if(const Stmt& s, const EnvironmentPtr& env) {
  for (size_t i = 0; i < s.exprs.size(); ++i)
    if (truthy(evaluate(*s.exprs[i], env))) return execute(s.bodies[i], env);
  return execute(s.bodies.back(), env);
}

void Interpreter::set_exported(const Expr& target, const EnvironmentPtr& env) {
  if (target.kind == ExprKind::Name) exported_[target.text] = env->at(target.place);
  if (target.kind == ExprKind::Tuple)
    for (const ExprPtr& item : target.items) set_exported(*item, env);
}

namespace {

// Attributes can be set on namespaces alone, which is checked before anything is evaluated.
template <typename Look>
void check_namespaces(const Expr& target, Look look) {
  if (target.kind == ExprKind::NamespaceRef && !look(target).is(Type::Namespace))
    fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
  if (target.kind == ExprKind::Tuple)
    for (const ExprPtr& item : target.items) check_namespaces(*item, look);
}

}  // namespace

void Interpreter::execute_set(const Stmt& s, const EnvironmentPtr& env) {
  check_namespaces(*s.exprs[0], [&](const Expr& e) { return env->at(e.place); });
  assign(*s.exprs[0], evaluate(*s.exprs[1], env), env);
  if (s.exported) set_exported(*s.exprs[0], env);
}

Interpreter::Flow Interpreter::execute_set_block(const Stmt& s, const EnvironmentPtr& env) {
  enter(s.scope, env);
  std::string body;
  {
    const Capture capture(*this, body);
    const Flow flow = execute(s.bodies[0], env);
    if (flow != Flow::Normal) return flow;
  }
  Value value = captured(std::move(body));
  if (s.exprs[1]) {
    const BlockText text(block_text_, std::move(value));
    value = evaluate(*s.exprs[1], env);
    if (autoescape_) value = Value::text(str(value), true);
  }
  check_namespaces(*s.exprs[0], [&](const Expr& e) { return env->at(e.place); });
  assign(*s.exprs[0], std::move(value), env);
  if (s.exported) set_exported(*s.exprs[0], env);
  leave(s.scope, env);
  return Flow::Normal;
}

Interpreter::Flow Interpreter::execute_filter_block(const Stmt& s, const EnvironmentPtr& env) {
  enter(s.scope, env);
  std::string body;
  {
    const Capture capture(*this, body);
    const Flow flow = execute(s.bodies[0], env);
    if (flow != Flow::Normal) return flow;
  }
  const BlockText text(block_text_, captured(std::move(body)));
  write_raw(evaluate(*s.exprs[0], env));
  leave(s.scope, env);
  return Flow::Normal;
}

Interpreter::Flow Interpreter::execute_with(const Stmt& s, const EnvironmentPtr& env) {
  enter(s.scope, env);
  for (size_t i = 0; i < s.with->targets.size(); ++i)
    assign(*s.with->targets[i], evaluate(*s.with->values[i], env), env);
  const Flow flow = execute(s.bodies[0], env);
  leave(s.scope, env);
  return flow;
}

Interpreter::Flow Interpreter::execute_autoescape(const Stmt& s, const EnvironmentPtr& env) {
  enter(s.scope, env);
  const bool outside = std::exchange(autoescape_, truthy(evaluate(*s.exprs[0], env)));
  const Flow flow = execute(s.bodies[0], env);
  autoescape_ = outside;
  leave(s.scope, env);
  return flow;
}

Interpreter::Flow Interpreter::execute_for(const ForCode& code, const EnvironmentPtr& env) {
  const Value iterable = evaluate(*code.iterable, env);
  if (!code.recursive) return run_loop(code, env, env, iterable, 0);
  write_raw(recurse(code, env, iterable, 0));
  return Flow::Normal;
}

Value Interpreter::recurse(const ForCode& code, const EnvironmentPtr& outer, const Value& iterable, int depth0) {
  const Call call(calls_, meter_.limits().depth);
  const int line = line_;
  const EnvironmentPtr env = new_environment(code.recursion, outer, outer->locals);
  std::string body;
  {
    const Capture capture(*this, body);
    run_loop(code, outer, env, iterable, depth0);
  }
  release(env);
  line_ = line;
  return captured(std::move(body));
}

// The items of a loop with a condition: each is assigned and tested when the loop comes to it.
std::shared_ptr<Iterator> Interpreter::filtered(const ForCode& code, const EnvironmentPtr& outer,
                                                std::shared_ptr<Iterator> items) {
  EnvironmentPtr env;
  const int depth = items->depth();
  return std::make_shared<Iterator>(
      [this, &code, outer, items = std::move(items), env]() mutable -> std::optional<Value> {
        if (!env) {
          env = new_environment(code.condition_function, outer, outer->locals);
          enter(code.condition_scope, env);
        }
        while (std::optional<Value> item = items->next()) {
          assign(*code.condition_target, *item, env);
          if (truthy(evaluate(*code.condition, env))) return evaluate(*code.condition_target, env);
        }
        return std::nullopt;
      },
      depth, "generator");
}

Interpreter::Flow Interpreter::run_loop(const ForCode& code, const EnvironmentPtr& outer, const EnvironmentPtr& env,
                                        const Value& iterable, int depth0) {
  std::shared_ptr<Iterator> items = iterate(iterable);
  if (code.condition) items = filtered(code, outer, std::move(items));
  Loop::Recurse again;
  if (code.recursive)
    again = [&code, outer](Interpreter& interpreter, const Value& inner, int depth) {
      return interpreter.recurse(code, outer, inner, depth);
    };
  const auto loop =
      track(std::make_shared<Loop>(code.condition ? Value() : iterable, std::move(items), std::move(again), depth0));
  bool completed = false;  // a round that ends with `continue` does not count
  while (loop->advance()) {
    meter_.step();
    if (code.loop >= 0) env->values[static_cast<size_t>(code.loop)] = Value::object(Type::Loop, loop);
    assign(*code.target, loop->current(), env);
    enter(code.scope, env);
    const Flow flow = execute(code.body, env);
    if (flow == Flow::Break) break;
    if (flow == Flow::Normal) completed = true;
  }
  leave(code.scope, env);
  release(loop);
  if (completed || code.otherwise.empty()) return Flow::Normal;
  return run_loop_else(code, env);
}

Interpreter::Flow Interpreter::run_loop_else(const ForCode& code, const EnvironmentPtr& env) {
  enter(code.else_scope, env);
  const Flow flow = execute(code.otherwise, env);
  leave(code.else_scope, env);
  return flow;
}

void Interpreter::execute_call_block(const Stmt& s, const EnvironmentPtr& env) {
  const Value caller = Value::object(Type::Macro, std::make_shared<Macro>(*s.macro, env));
  write_raw(evaluate_call(*s.exprs[0], env, caller));
}

void Interpreter::execute_generation(const Stmt& s, const EnvironmentPtr& env) {
  const Macro body(*s.macro, env);
  Arguments none;
  const Value generated = call_macro(body, none);
  spans_.emplace_back(output_length_, output_length_ + generated.text_object().length);
  write(generated.str());
}

void Interpreter::execute_block(const Stmt& s, const EnvironmentPtr& env) {
  const BlockCode& code = *s.block;
  if (code.required) fail("TemplateRuntimeError", "Required block '{}' not found", code.name);
  std::shared_ptr<const Locals> locals = env->locals;
  if (code.scoped) {
    auto more = std::make_shared<Locals>(locals ? *locals : Locals());
    meter_.step(static_cast<int64_t>(more->size() + s.locals.size()));
    for (const auto& [name, place] : s.locals)
      if (Value v = env->at(place); !v.missing()) (*more)[name] = std::move(v);
    locals = std::move(more);
  }
  run_block(code, std::move(locals));
}

void Interpreter::run_block(const BlockCode& code, std::shared_ptr<const Locals> locals) {
  const Call call(calls_, meter_.limits().depth);
  const int line = line_;
  const EnvironmentPtr env = new_environment(code.function, nullptr, std::move(locals));
  if (code.self >= 0) env->values[static_cast<size_t>(code.self)] = Value::object<Object>(Type::Self, nullptr);
  if (code.super >= 0)
    env->values[static_cast<size_t>(code.super)] =
        Value::undefined(fmt::format("there is no parent block called '{}'.", code.name));
  enter(code.scope, env);
  execute(code.body, env);
  release(env);
  line_ = line;
}

std::string Interpreter::block_text(const BlockCode& code, std::shared_ptr<const Locals> locals) {
  std::string body;
  const Capture capture(*this, body);
  run_block(code, std::move(locals));
  return body;
}

void Interpreter::assign(const Expr& target, Value value, const EnvironmentPtr& env) {
  if (target.kind == ExprKind::Tuple) {
    unpack(target, value, env);
  } else if (target.kind == ExprKind::NamespaceRef) {
    if (target.attribute[0] == '_')
      fail("SecurityError",
           "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{}'. Please rename the "
           "attribute.",
           target.attribute);
    const Value object = env->at(target.place);
    if (!object.is(Type::Namespace)) fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    object.get<Namespace>().set(target.attribute, std::move(value));
  } else {
    env->at(target.place) = std::move(value);
  }
}

void Interpreter::unpack(const Expr& target, const Value& value, const EnvironmentPtr& env) {
  const auto items = try_iterate(value);
  if (!items) type_error("cannot unpack non-iterable {} object", type_name(value));
  Values parts;
  while (parts.size() <= target.items.size()) {
    std::optional<Value> part = items->next();
    if (!part) break;
    parts.push_back(std::move(*part));
  }
  if (parts.size() > target.items.size()) value_error("too many values to unpack (expected {})", target.items.size());
  if (parts.size() < target.items.size())
    value_error("not enough values to unpack (expected {}, got {})", target.items.size(), parts.size());
  for (size_t i = 0; i < parts.size(); ++i) assign(*target.items[i], std::move(parts[i]), env);
}

}  // namespace hierarchos::jinja
