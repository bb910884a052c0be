// A parsed template. Names are resolved to places of variables by scopes.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "template/value.h"

namespace hierarchos::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

// Where a variable is: `hops` functions outwards, then the index among that function's variables.
struct Place {
  int32_t hops = -1;
  int32_t index = -1;
};

enum class ExprKind : uint8_t {
  Const,
  Name,          // name
  NamespaceRef,  // name.attribute, as a target; `attribute` in text
  Tuple,         // items
  List,
  Dict,      // items: key, value, key, value …
  Negative,  // items[0]
  Positive,
  Not,
  Add,  // items[0], items[1]
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
  Power,
  And,
  Or,
  Concat,       // items
  Compare,      // items[0] ops[0] items[1] ops[1] items[2] …
  Conditional,  // items: test, value if true, value if false (may be null)
  Attribute,    // items[0].text
  Item,         // items[0][items[1]]
  Slice,        // items[0][items[1]:items[2]:items[3]], each of the last three may be null
  Call,         // items[0](arguments)
  Filter,       // items[0] | text(arguments); items[0] is null for the text of a block
  Test,         // items[0] is text(arguments)
};

enum class CompareOp : uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };
enum class NameUse : uint8_t { Load, Store, Parameter };
enum class Escape : uint8_t { No, Yes, AtRuntime };  // is text escaped for HTML where it is put together?

struct Expr {
  Expr(ExprKind k, int l) : kind(k), line(l) {}
  ExprKind kind;
  NameUse use = NameUse::Load;
  Escape escape = Escape::No;
  int line;
  int height = 1;    // of the tree below, itself included
  std::string text;  // name of the variable, attribute, filter or test
  std::string attribute;
  Value value;
  std::vector<ExprPtr> items;
  std::vector<CompareOp> ops;
  // Arguments of calls, filters and tests.
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;  // *args, **kwargs
  Place place;
};

// Variables to set when a scope is entered.
struct Load {
  enum class Kind : uint8_t { Parameter, Resolve, Alias, Undefined };
  int32_t index = -1;
  Kind kind = Kind::Undefined;
  Place source;      // of an alias
  std::string name;  // to resolve in the context
};

struct Scope {
  std::vector<Load> loads;
};

// A body with variables of its own, which functions inside it may use: the template, a macro, a recursive loop, the
// condition of a loop, a block.
struct FunctionCode {
  int32_t variables = 0;
  std::map<std::pair<int, std::string>, int32_t> places;  // by level of the scope and name
  int depth = 0;                                          // of nesting in other functions
};

struct MacroCode {
  int line = 0;
  std::string name;  // "" of a call block's body
  std::vector<ExprPtr> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  FunctionCode function;
  Scope scope;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  bool explicit_caller = false;                    // a parameter is called `caller`
  int32_t caller = -1, kwargs = -1, varargs = -1;  // places of their variables
};

struct BlockCode {
  int line = 0;
  std::string name;
  bool scoped = false, required = false;
  Body body;
  FunctionCode function;
  Scope scope;
  int32_t self = -1, super = -1;
};

struct ForCode {
  ExprPtr target, iterable, condition;
  bool recursive = false;
  Body body, otherwise;
  Scope scope, else_scope;
  int32_t loop = -1;  // the variable `loop`; -1 where nothing uses it
  // The condition is a function of its own, with its own target.
  ExprPtr condition_target;
  FunctionCode condition_function;
  Scope condition_scope;
  FunctionCode recursion;  // of the body when the loop is recursive
};

struct With {
  std::vector<ExprPtr> targets, values;
};

enum class StmtKind : uint8_t {
  Text,      // text
  Output,    // exprs
  Set,       // exprs: target, value
  SetBlock,  // exprs: target, filter (may be null); body
  If,        // exprs[i], bodies[i] for if and each elif; bodies.back() of else
  For,
  Macro,
  CallBlock,    // exprs: call; macro
  Generation,   // macro
  FilterBlock,  // exprs: filter; body
  With,
  Autoescape,  // exprs: the flag; body
  Block,
  Break,
  Continue,
  Load,  // include, import, from, extends: fails when it is executed
};

struct Stmt {
  Stmt(StmtKind k, int l) : kind(k), line(l) {}
  StmtKind kind;
  Escape escape = Escape::No;
  int line;
  std::string text;
  std::vector<ExprPtr> exprs;
  std::vector<std::string> names;  // that an import would set
  std::vector<Body> bodies;
  std::unique_ptr<ForCode> loop;
  std::unique_ptr<MacroCode> macro;
  std::unique_ptr<With> with;
  std::shared_ptr<BlockCode> block;
  Scope scope;
  std::vector<std::pair<std::string, Place>> locals;  // that a scoped block sees
  Place place;                                        // of a macro's name
  bool exported = false;                              // at the top: blocks see what it sets
};

struct Syntax {
  Body body;
  FunctionCode function;
  Scope scope;
  int32_t self = -1;
  std::map<std::string, std::shared_ptr<BlockCode>> blocks;
};

}  // namespace hierarchos::jinja
