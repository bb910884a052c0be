// Executes a parsed template.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "template/ast.h"
#include "template/clock.h"
#include "template/loop.h"
#include "template/macro.h"
#include "template/value.h"

namespace hierarchos::jinja {

// Variables that a scoped block sees beside the template's own.
using Locals = std::map<std::string, Value>;

// The variables of one execution of a function.
class Environment : public Tracked {
 public:
  Environment(const FunctionCode& code, std::shared_ptr<Environment> outer, std::shared_ptr<const Locals> more)
      : Tracked(96 + static_cast<size_t>(code.variables) * sizeof(Value)),
        values(static_cast<size_t>(code.variables)),
        parent(std::move(outer)),
        locals(std::move(more)) {}
  void clear() override {
    values.clear();
    parent.reset();
  }
  Value& at(const Place& place) {
    Environment* e = this;
    for (int32_t i = 0; i < place.hops; ++i) e = e->parent.get();
    return e->values[static_cast<size_t>(place.index)];
  }

  Values values;
  std::shared_ptr<Environment> parent;
  std::shared_ptr<const Locals> locals;  // null but in a scoped block
};
using EnvironmentPtr = std::shared_ptr<Environment>;

using Span = std::pair<size_t, size_t>;  // in code points of the output, the end excluded

class Interpreter {
 public:
  // `variables` is a dict. All three stay where they are until the interpreter is gone.
  Interpreter(const Syntax& syntax, const Value& variables, const Limits& limits, Clock clock);
  ~Interpreter();

  // Once. Throws Failure; line() is where it happened.
  std::string render();
  int line() const { return line_; }
  const std::vector<Span>& generation_spans() const { return spans_; }

  // For filters, tests and functions.
  Value call(const Value& callee, Arguments& arguments);
  Value filter(const std::string& name, const Value& input, Arguments& arguments);
  bool test(const std::string& name, const Value& input, Arguments& arguments);
  bool autoescape() const { return autoescape_; }
  const Clock& clock() const { return clock_; }
  template <typename T>
  std::shared_ptr<T> track(std::shared_ptr<T> object) {
    tracked_.push_back(object);
    return object;
  }

 private:
  enum class Flow : uint8_t { Normal, Break, Continue };
  class Deeper;
  class Capture;

  Flow execute(const Body& body, const EnvironmentPtr& env);
  Flow execute(const Stmt& s, const EnvironmentPtr& env);
  Flow execute_if(const Stmt& s, const EnvironmentPtr& env);
  Flow execute_for(const ForCode& code, const EnvironmentPtr& env);
  Flow run_loop(const ForCode& code, const EnvironmentPtr& outer, const EnvironmentPtr& env, const Value& iterable,
                int depth0);
  Flow run_loop_else(const ForCode& code, const EnvironmentPtr& env);
  Value recurse(const ForCode& code, const EnvironmentPtr& outer, const Value& iterable, int depth0);
  std::shared_ptr<Iterator> filtered(const ForCode& code, const EnvironmentPtr& outer, std::shared_ptr<Iterator> items);
  Flow execute_autoescape(const Stmt& s, const EnvironmentPtr& env);
  Flow execute_with(const Stmt& s, const EnvironmentPtr& env);
  Flow execute_filter_block(const Stmt& s, const EnvironmentPtr& env);
  Flow execute_set_block(const Stmt& s, const EnvironmentPtr& env);
  void execute_set(const Stmt& s, const EnvironmentPtr& env);
  void execute_output(const Stmt& s, const EnvironmentPtr& env);
  void execute_call_block(const Stmt& s, const EnvironmentPtr& env);
  void execute_generation(const Stmt& s, const EnvironmentPtr& env);
  void execute_block(const Stmt& s, const EnvironmentPtr& env);
  std::string block_text(const BlockCode& code, std::shared_ptr<const Locals> locals);
  void run_block(const BlockCode& code, std::shared_ptr<const Locals> locals);
  void set_exported(const Expr& target, const EnvironmentPtr& env);

  void enter(const Scope& scope, const EnvironmentPtr& env);
  static void leave(const Scope& scope, const EnvironmentPtr& env);
  Value resolve(const std::string& name, const Environment& env) const;
  void assign(const Expr& target, Value value, const EnvironmentPtr& env);
  void unpack(const Expr& target, const Value& value, const EnvironmentPtr& env);
  void write(std::string_view text);
  void write_raw(const Value& v);
  Value captured(std::string text) const { return Value::text(std::move(text), autoescape_); }
  bool escapes(Escape mode) const { return mode == Escape::Yes || (mode == Escape::AtRuntime && autoescape_); }

  Value evaluate(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_name(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_compare(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_concat(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_conditional(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_dict(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_slice(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_call(const Expr& e, const EnvironmentPtr& env, const Value& caller);
  Value evaluate_filter(const Expr& e, const EnvironmentPtr& env);
  Value evaluate_binary(const Expr& e, const EnvironmentPtr& env);
  Values evaluate_all(const std::vector<ExprPtr>& exprs, const EnvironmentPtr& env);
  Arguments evaluate_arguments(const Expr& e, const EnvironmentPtr& env);

  Value call_macro(const Macro& macro, Arguments& arguments);
  void bind_parameters(const Macro& macro, Arguments& arguments, Environment& env) const;
  EnvironmentPtr new_environment(const FunctionCode& code, EnvironmentPtr parent, std::shared_ptr<const Locals> locals);
  void release(const std::shared_ptr<Tracked>& object);

  const Syntax& syntax_;
  const Value& variables_;
  Meter meter_;
  Clock clock_;
  Locals globals_, exported_;
  std::string output_;
  size_t output_length_ = 0;  // in code points
  std::string* out_ = &output_;
  std::vector<Span> spans_;
  Value block_text_;  // what a filter without input works on
  bool autoescape_ = false;
  int line_ = 1;
  int depth_ = 0, calls_ = 0;
  std::vector<std::shared_ptr<Tracked>> tracked_;
};

// Python's operators. `e.kind` says which.
Value binary_operation(ExprKind kind, const Value& a, const Value& b);
Value negative(const Value& v);
Value positive(const Value& v);
Value absolute(const Value& v);

// x.name and x[key], as the sandbox allows them; undefined where there is nothing.
Value get_attribute(const Value& v, const std::string& name);
Value get_item(const Value& v, const Value& key);
Value get_slice(const Value& v, const Value& begin, const Value& end, const Value& step);
// Does v have the attribute itself, not as an item?
bool has_attribute(const Value& v, const std::string& name);

Locals global_functions();

}  // namespace hierarchos::jinja
