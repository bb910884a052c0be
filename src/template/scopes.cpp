#include "template/scopes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "template/filters.h"
#include "template/lexer.h"

namespace hierarchos::jinja {
namespace {

// The names that one scope knows. `level` counts scopes inwards; the same name in two scopes beside each other, at the
// same level of one function, is one variable.
class Symbols {
 public:
  Symbols(Symbols* parent, FunctionCode& function)
      : parent_(parent),
        function_(&function),
        level_(parent != nullptr ? parent->level_ + 1 : 0),
        work_(parent != nullptr ? parent->work_ : std::make_shared<int64_t>(0)) {}

  // Copying the names of a scope takes time for each; a source of some megabytes could make hours of it.
  void spend(int line, size_t copies) const {
    constexpr int64_t most = 3'000'000;
    *work_ += static_cast<int64_t>(known_.size() * copies);
    if (*work_ > most) throw SyntaxFailure{line, "the template has too many variables and conditions"};
  }

  void load(const std::string& name) {
    if (find(name) == nullptr) define(name, Load::Kind::Resolve);
  }
  void store(const std::string& name) {
    stores_.insert(name);
    if (known_.count(name) != 0) return;
    const bool outer = parent_ != nullptr && parent_->find(name) != nullptr;
    define(name, outer ? Load::Kind::Alias : Load::Kind::Undefined);
  }
  void declare_parameter(const std::string& name) {
    stores_.insert(name);
    define(name, Load::Kind::Parameter);
  }

  // After the branches of a condition, each of which began as a copy of this: what only some of them assign keeps the
  // value from outside in the others.
  void merge(const std::vector<Symbols>& branches) {
    std::set<std::string> fresh;
    for (const Symbols& branch : branches)
      for (const std::string& name : branch.stores_)
        if (stores_.count(name) == 0) fresh.insert(name);
    for (const Symbols& branch : branches) {
      for (const std::string& name : branch.order_) define(name, branch.known_.at(name));
      stores_.insert(branch.stores_.begin(), branch.stores_.end());
    }
    for (const std::string& name : fresh) {
      const bool outer = parent_ != nullptr && parent_->find(name) != nullptr;
      define(name, outer ? Load::Kind::Alias : Load::Kind::Resolve);
    }
  }

  // From the code of `user`, which is this scope or one inside it.
  Place place(const std::string& name, const FunctionCode& user) const {
    const Symbols* owner = find(name);
    if (owner == nullptr) return {};
    FunctionCode& function = *owner->function_;
    const auto [at, is_new] = function.places.try_emplace({owner->level_, name}, function.variables);
    if (is_new) ++function.variables;
    return {user.depth - function.depth, at->second};
  }
  Place place(const std::string& name) const { return place(name, *function_); }
  int32_t own_index(const std::string& name) const { return known_.count(name) != 0 ? place(name).index : -1; }

  Scope scope() const {
    Scope out;
    for (const std::string& name : order_) {
      jinja::Load load;
      load.kind = known_.at(name);
      load.index = place(name).index;
      load.name = name;
      if (load.kind == jinja::Load::Kind::Alias) load.source = parent_->place(name, *function_);
      out.loads.push_back(std::move(load));
    }
    return out;
  }

  std::vector<std::pair<std::string, Place>> stored_places() const {
    std::vector<std::pair<std::string, Place>> out;
    std::set<std::string> seen;
    for (const Symbols* s = this; s != nullptr; s = s->parent_)
      for (const std::string& name : s->stores_)
        if (seen.insert(name).second) out.emplace_back(name, place(name));
    return out;
  }

  FunctionCode& function() const { return *function_; }

 private:
  using Load = jinja::Load;

  const Symbols* find(const std::string& name) const {
    const Symbols* s = this;
    while (s != nullptr && s->known_.count(name) == 0) s = s->parent_;
    return s;
  }
  void define(const std::string& name, Load::Kind kind) {
    if (known_.insert_or_assign(name, kind).second) order_.push_back(name);
  }

  Symbols* parent_;
  FunctionCode* function_;
  int level_;
  std::shared_ptr<int64_t> work_;
  std::map<std::string, Load::Kind> known_;
  std::vector<std::string> order_;
  std::set<std::string> stores_;
};

template <typename F>
void for_each_child(const Expr& e, F f) {
  for (const ExprPtr& item : e.items)
    if (item) f(*item);
  for (const ExprPtr& item : e.positional) f(*item);
  for (const auto& item : e.named) f(*item.second);
  if (e.more_positional) f(*e.more_positional);
  if (e.more_named) f(*e.more_named);
}

// Calls `f` for each name in an expression, in order.
template <typename F>
void for_each_name(const Expr& e, F f) {
  if (e.kind == ExprKind::Name || e.kind == ExprKind::NamespaceRef) f(e);
  for_each_child(e, [&](const Expr& child) { for_each_name(child, f); });
}

template <typename F>
void for_each_name(const Body& body, F f);

// Of all that a statement holds, but not inside blocks.
template <typename F>
void for_each_name(const Stmt& s, F f) {
  for (const ExprPtr& e : s.exprs)
    if (e) for_each_name(*e, f);
  if (s.with) {
    for (const ExprPtr& e : s.with->targets) for_each_name(*e, f);
    for (const ExprPtr& e : s.with->values) for_each_name(*e, f);
  }
  if (s.macro) {
    for (const ExprPtr& e : s.macro->parameters) for_each_name(*e, f);
    for (const ExprPtr& e : s.macro->defaults) for_each_name(*e, f);
    for_each_name(s.macro->body, f);
  }
  if (s.loop) {
    for_each_name(*s.loop->target, f);
    for_each_name(*s.loop->iterable, f);
    for_each_name(s.loop->body, f);
    for_each_name(s.loop->otherwise, f);
    if (s.loop->condition) for_each_name(*s.loop->condition, f);
  }
  for (const Body& body : s.bodies) for_each_name(body, f);
}

template <typename F>
void for_each_name(const Body& body, F f) {
  for (const StmtPtr& s : body) for_each_name(*s, f);
}

// Is a special name used in a body before anything there assigns it?
bool uses(const Body& body, const std::string& name) {
  bool assigned = false, used = false;
  for_each_name(body, [&](const Expr& e) {
    if (e.kind != ExprKind::Name || e.text != name) return;
    if (e.use == NameUse::Load)
      used = used || !assigned;
    else
      assigned = true;
  });
  return used;
}

bool has_scoped_block(const Body& body);
bool has_scoped_block(const Stmt& s) {
  if (s.block && (s.block->scoped || has_scoped_block(s.block->body))) return true;
  if (s.macro && has_scoped_block(s.macro->body)) return true;
  if (s.loop && (has_scoped_block(s.loop->body) || has_scoped_block(s.loop->otherwise))) return true;
  return std::any_of(s.bodies.begin(), s.bodies.end(), [](const Body& b) { return has_scoped_block(b); });
}
bool has_scoped_block(const Body& body) {
  return std::any_of(body.begin(), body.end(), [](const StmtPtr& s) { return has_scoped_block(*s); });
}

void declare_targets(const Expr& target, Symbols& symbols) {
  for_each_name(target, [&](const Expr& e) { symbols.declare_parameter(e.text); });
}

// What an expression does to the names of its scope.
void collect(const Expr& e, Symbols& symbols) {
  for_each_name(e, [&](const Expr& name) {
    if (name.use == NameUse::Load || name.kind == ExprKind::NamespaceRef)
      symbols.load(name.text);
    else if (name.use == NameUse::Store)
      symbols.store(name.text);
    else
      symbols.declare_parameter(name.text);
  });
}

void collect(const Body& body, Symbols& symbols);

void collect_if(const Stmt& s, size_t first, size_t last, const Body* otherwise, Symbols& symbols) {
  collect(*s.exprs[first], symbols);
  symbols.spend(s.line, 6);  // there and back
  std::vector<Symbols> branches(3, symbols);
  collect(s.bodies[first], branches[0]);
  for (size_t i = first + 1; i < last; ++i) collect_if(s, i, i + 1, nullptr, branches[1]);
  if (otherwise != nullptr) collect(*otherwise, branches[2]);
  symbols.merge(branches);
}

// What a statement does to the names of the scope that it stands in; those of its own are another matter.
void collect(const Stmt& s, Symbols& symbols) {
  switch (s.kind) {
    case StmtKind::Output:
    case StmtKind::CallBlock:
    case StmtKind::FilterBlock:
      for (const ExprPtr& e : s.exprs) collect(*e, symbols);
      break;
    case StmtKind::Set:
      collect(*s.exprs[1], symbols);
      collect(*s.exprs[0], symbols);
      break;
    case StmtKind::SetBlock:
      collect(*s.exprs[0], symbols);
      break;
    case StmtKind::If:
      collect_if(s, 0, s.exprs.size(), &s.bodies.back(), symbols);
      break;
    case StmtKind::For:
      collect(*s.loop->iterable, symbols);
      break;
    case StmtKind::Macro:
      symbols.store(s.macro->name);
      break;
    case StmtKind::With:
      for (const ExprPtr& e : s.with->values) collect(*e, symbols);
      break;
    case StmtKind::Load:
      collect(*s.exprs[0], symbols);
      for (const std::string& name : s.names) symbols.store(name);
      break;
    default:
      break;
  }
}

void collect(const Body& body, Symbols& symbols) {
  for (const StmtPtr& s : body) collect(*s, symbols);
}

ExprPtr copy_target(const Expr& target) {
  auto out = std::make_unique<Expr>(target.kind, target.line);
  out->use = target.use;
  out->text = target.text;
  for (const ExprPtr& item : target.items) out->items.push_back(copy_target(*item));
  return out;
}

// Walks the template as it will be executed and gives each name its place.
class Resolver {
 public:
  void resolve(Syntax& syntax) {
    Symbols symbols(nullptr, syntax.function);
    if (uses(syntax.body, "self")) symbols.declare_parameter("self");
    collect(syntax.body, symbols);
    syntax.self = symbols.own_index("self");
    body(syntax.body, symbols, {.top = true});
    syntax.scope = symbols.scope();
    for (auto& [name, code] : syntax.blocks) block(*code);
  }

 private:
  struct Frame {
    bool top = false;   // what is set is seen by blocks
    bool soft = false;  // in a condition: unknown filters matter only when they are reached
  };

  void block(BlockCode& code) {
    Symbols symbols(nullptr, code.function);
    if (uses(code.body, "self")) symbols.declare_parameter("self");
    if (uses(code.body, "super")) symbols.declare_parameter("super");
    collect(code.body, symbols);
    code.self = symbols.own_index("self");
    code.super = symbols.own_index("super");
    body(code.body, symbols, {});
    code.scope = symbols.scope();
  }

  void body(Body& statements, Symbols& symbols, Frame frame) {
    for (const StmtPtr& s : statements) statement(*s, symbols, frame);
  }

  void statement(Stmt& s, Symbols& symbols, Frame frame) {
    s.exported = frame.top;
    switch (s.kind) {
      case StmtKind::Output:
      case StmtKind::Set:
      case StmtKind::Load:
        expressions(s, symbols, frame);
        break;
      case StmtKind::If:
        frame.soft = true;
        expressions(s, symbols, frame);
        for (Body& b : s.bodies) body(b, symbols, frame);
        break;
      case StmtKind::For:
        for_loop(*s.loop, symbols, frame);
        break;
      case StmtKind::Macro:
        macro(*s.macro, symbols);
        s.place = symbols.place(s.macro->name);
        break;
      case StmtKind::CallBlock:
        macro(*s.macro, symbols);
        expressions(s, symbols, frame);
        break;
      case StmtKind::Generation:
        macro(*s.macro, symbols);
        break;
      case StmtKind::SetBlock:
        set_block(s, symbols, frame);
        break;
      case StmtKind::FilterBlock: {
        Symbols inner(&symbols, symbols.function());
        collect(s.bodies[0], inner);
        collect(*s.exprs[0], inner);
        inner_body(s, inner);
        break;
      }
      case StmtKind::Autoescape: {
        Symbols inner(&symbols, symbols.function());
        collect(*s.exprs[0], inner);
        collect(s.bodies[0], inner);
        inner_body(s, inner);
        break;
      }
      case StmtKind::With: {
        for (const ExprPtr& e : s.with->values) expression(*e, symbols, frame.soft);
        Symbols inner(&symbols, symbols.function());
        for (const ExprPtr& e : s.with->targets) collect(*e, inner);
        collect(s.bodies[0], inner);
        for (const ExprPtr& e : s.with->targets) expression(*e, inner, false);
        inner_body(s, inner);
        break;
      }
      case StmtKind::Block:
        if (!s.block->scoped) break;
        symbols.spend(s.line, 10);
        s.locals = symbols.stored_places();
        break;
      case StmtKind::Text:
      case StmtKind::Break:
      case StmtKind::Continue:
        break;
    }
  }

  void inner_body(Stmt& s, Symbols& inner) {
    expressions(s, inner, {});
    body(s.bodies[0], inner, {});
    s.scope = inner.scope();
  }

  void set_block(Stmt& s, Symbols& symbols, Frame frame) {
    Symbols inner(&symbols, symbols.function());
    collect(s.bodies[0], inner);
    if (s.exprs[1]) collect(*s.exprs[1], inner);
    expression(*s.exprs[0], symbols, frame.soft);
    if (s.exprs[1]) expression(*s.exprs[1], inner, false);
    body(s.bodies[0], inner, {});
    s.scope = inner.scope();
  }

  void for_loop(ForCode& code, Symbols& symbols, Frame frame) {
    FunctionCode& outer = symbols.function();
    code.recursion.depth = code.condition_function.depth = outer.depth + 1;
    FunctionCode& function = code.recursive ? code.recursion : outer;
    check_loop_name(code);
    expression(*code.iterable, symbols, frame.soft);

    Symbols inside(&symbols, function);
    if (code.recursive || uses(code.body, "loop") || has_scoped_block(code.body) || has_scoped_block(code.otherwise))
      inside.declare_parameter("loop");
    declare_targets(*code.target, inside);
    collect(code.body, inside);
    code.loop = inside.own_index("loop");

    if (code.condition) {
      Symbols condition(&symbols, code.condition_function);
      declare_targets(*code.target, condition);
      collect(*code.condition, condition);
      code.condition_target = copy_target(*code.target);
      expression(*code.condition_target, condition, false);
      expression(*code.condition, condition, false);
      code.condition_scope = condition.scope();
    }

    expression(*code.target, inside, false);
    body(code.body, inside, {});
    code.scope = inside.scope();

    Symbols otherwise(&symbols, function);
    collect(code.otherwise, otherwise);
    body(code.otherwise, otherwise, {});
    code.else_scope = otherwise.scope();
  }

  static void check_loop_name(const ForCode& code) {
    const auto check = [](const Expr& e) {
      if (e.kind == ExprKind::Name && e.use == NameUse::Store && e.text == "loop")
        throw SyntaxFailure{e.line, "Can't assign to special loop variable in for-loop target"};
    };
    for_each_name(*code.target, check);
    for_each_name(code.body, check);
    for_each_name(code.otherwise, check);
  }

  void macro(MacroCode& code, Symbols& symbols) {
    code.function.depth = symbols.function().depth + 1;
    Symbols inner(&symbols, code.function);
    for (const ExprPtr& e : code.parameters) collect(*e, inner);
    for (const ExprPtr& e : code.defaults) collect(*e, inner);
    collect(code.body, inner);
    code.uses_caller = uses(code.body, "caller");
    if (code.uses_caller && code.explicit_caller) check_explicit_caller(code);
    const auto is_parameter = [&](const char* name) {
      return std::any_of(code.parameters.begin(), code.parameters.end(),
                         [&](const ExprPtr& p) { return p->text == name; });
    };
    if (code.uses_caller && !code.explicit_caller) inner.declare_parameter("caller");
    code.uses_kwargs = uses(code.body, "kwargs") && !is_parameter("kwargs");
    if (code.uses_kwargs) inner.declare_parameter("kwargs");
    code.uses_varargs = uses(code.body, "varargs") && !is_parameter("varargs");
    if (code.uses_varargs) inner.declare_parameter("varargs");
    code.caller = inner.own_index("caller");
    code.kwargs = inner.own_index("kwargs");
    code.varargs = inner.own_index("varargs");
    for (const ExprPtr& e : code.parameters) expression(*e, inner, false);
    for (const ExprPtr& e : code.defaults) expression(*e, inner, false);
    body(code.body, inner, {});
    code.scope = inner.scope();
  }

  static void check_explicit_caller(const MacroCode& code) {
    const size_t without_default = code.parameters.size() - code.defaults.size();
    for (size_t i = 0; i < without_default; ++i)
      if (code.parameters[i]->text == "caller")
        throw SyntaxFailure{code.line,
                            "When defining macros or call blocks the special \"caller\" argument must be omitted or "
                            "be given a default."};
  }

  void expressions(Stmt& s, Symbols& symbols, Frame frame) {
    for (const ExprPtr& e : s.exprs)
      if (e) expression(*e, symbols, frame.soft);
  }

  void expression(Expr& e, Symbols& symbols, bool soft) {
    if (e.kind == ExprKind::Name || e.kind == ExprKind::NamespaceRef) e.place = symbols.place(e.text);
    if (!soft && e.kind == ExprKind::Filter && find_filter(e.text) == nullptr)
      throw SyntaxFailure{e.line, fmt::format("No filter named '{}'.", e.text), "TemplateAssertionError"};
    if (!soft && e.kind == ExprKind::Test && find_test(e.text) == nullptr)
      throw SyntaxFailure{e.line, fmt::format("No test named '{}'.", e.text), "TemplateAssertionError"};
    soft = soft || e.kind == ExprKind::Conditional;
    const auto visit = [&](ExprPtr& child) {
      if (child) expression(*child, symbols, soft);
    };
    for (ExprPtr& item : e.items) visit(item);
    for (ExprPtr& item : e.positional) visit(item);
    for (auto& item : e.named) visit(item.second);
    visit(e.more_positional);
    visit(e.more_named);
  }
};

}  // namespace

void resolve_names(Syntax& syntax) { Resolver().resolve(syntax); }

}  // namespace hierarchos::jinja
