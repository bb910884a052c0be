// The parser's part for expressions.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "template/ast.h"
#include "template/lexer.h"

namespace hierarchos::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const Limits& limits) : tokens_(std::move(tokens)), limits_(limits) {}

 protected:
  // Counts the depth of the source, which bounds the recursion.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > parser_.limits_.depth)
        parser_.fail(fmt::format("nested more than {} deep", parser_.limits_.depth), parser_.current().line);
    }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    ExpressionParser& parser_;
  };

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void advance() { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  bool is_name(std::string_view name) const { return current().kind == TokenKind::Name && current().text == name; }
  bool is_operator(std::string_view o) const { return current().kind == TokenKind::Operator && current().text == o; }
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view o);
  void expect(TokenKind kind);
  void expect_name(std::string_view name);
  std::string expect_any_name();
  void expect_operator(std::string_view o);
  [[noreturn]] void fail(const std::string& message, int line) const { throw SyntaxFailure{line, message}; }

  ExprPtr expression(bool with_condition = true);
  // Expressions with commas between them are a tuple. `end` is a name that may end it.
  ExprPtr tuple(bool with_condition = true, std::string_view end = "", bool in_parentheses = false);
  // What can be assigned to; `attributes`: of namespaces, too.
  ExprPtr target(std::string_view end, bool attributes);
  ExprPtr name_target();
  // Filters applied to `node`, null for a block's text; `first_inline`: the first comes without a pipe.
  ExprPtr filters(ExprPtr node, bool first_inline = false);
  static void set_use(Expr& target, NameUse use);

  Escape escape_ = Escape::No;

 private:
  ExprPtr node(ExprKind kind, int line) const;
  ExprPtr unary(ExprKind kind, int line, ExprPtr a) const;
  ExprPtr binary(ExprKind kind, ExprPtr a, ExprPtr b) const;
  void add(Expr& parent, ExprPtr child) const;
  void grow(Expr& parent, const Expr& child) const;
  bool at_tuple_end(std::string_view end) const;

  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr prefixed(bool with_filters = true);
  ExprPtr primary(bool attributes = false);
  ExprPtr name_or_constant(bool attributes);
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr attribute(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr subscribed();
  ExprPtr call(ExprPtr callee);
  void arguments(Expr& call);
  ExprPtr test(ExprPtr node);

  std::vector<Token> tokens_;
  Limits limits_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace hierarchos::jinja
