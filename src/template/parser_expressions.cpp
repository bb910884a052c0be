#include <algorithm>

#include "template/parser_base.h"

namespace hierarchos::jinja {
namespace {

constexpr int kHighestTree = 1000;  // a long chain of operators is a high tree
constexpr size_t kMostArguments = 1000;

std::string described(const Token& token) {
  switch (token.kind) {
    case TokenKind::Data:
      return "template data / text";
    case TokenKind::BlockBegin:
      return "begin of statement block";
    case TokenKind::BlockEnd:
      return "end of statement block";
    case TokenKind::VariableBegin:
      return "begin of print statement";
    case TokenKind::VariableEnd:
      return "end of print statement";
    case TokenKind::String:
      return "string";
    case TokenKind::Number:
      return token.integer() ? "integer" : "float";
    case TokenKind::End:
      return "end of template";
    default:
      return token.text;
  }
}

std::string described(TokenKind kind) {
  Token token;
  token.kind = kind;
  return kind == TokenKind::Name ? "name" : described(token);
}

}  // namespace

bool ExpressionParser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  advance();
  return true;
}

bool ExpressionParser::skip_operator(std::string_view o) {
  if (!is_operator(o)) return false;
  advance();
  return true;
}

void ExpressionParser::expect(TokenKind kind) {
  if (current().kind != kind)
    fail(fmt::format("expected token '{}', got '{}'", described(kind), described(current())), current().line);
  advance();
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail(fmt::format("expected token '{}', got '{}'", name, described(current())), current().line);
}

std::string ExpressionParser::expect_any_name() {
  std::string name = current().text;
  expect(TokenKind::Name);
  return name;
}

void ExpressionParser::expect_operator(std::string_view o) {
  if (!skip_operator(o)) fail(fmt::format("expected token '{}', got '{}'", o, described(current())), current().line);
}

ExprPtr ExpressionParser::node(ExprKind kind, int line) const {
  auto out = std::make_unique<Expr>(kind, line);
  out->escape = escape_;
  return out;
}

void ExpressionParser::grow(Expr& parent, const Expr& child) const {
  parent.height = std::max(parent.height, child.height + 1);
  if (parent.height > kHighestTree) fail("the expression is too long", parent.line);
}

void ExpressionParser::add(Expr& parent, ExprPtr child) const {
  if (child) grow(parent, *child);
  parent.items.push_back(std::move(child));
}

ExprPtr ExpressionParser::unary(ExprKind kind, int line, ExprPtr a) const {
  ExprPtr out = node(kind, line);
  add(*out, std::move(a));
  return out;
}

ExprPtr ExpressionParser::binary(ExprKind kind, ExprPtr a, ExprPtr b) const {
  const int line = a->line;
  ExprPtr out = unary(kind, line, std::move(a));
  add(*out, std::move(b));
  return out;
}

ExprPtr ExpressionParser::expression(bool with_condition) {
  const Nested nested(*this);
  ExprPtr value = disjunction();
  while (with_condition && is_name("if")) {
    ExprPtr out = node(ExprKind::Conditional, value->line);
    advance();
    add(*out, disjunction());
    add(*out, std::move(value));
    add(*out, skip_name("else") ? expression() : nullptr);
    value = std::move(out);
  }
  return value;
}

ExprPtr ExpressionParser::disjunction() {
  ExprPtr left = conjunction();
  while (skip_name("or")) {
    ExprPtr right = conjunction();
    left = binary(ExprKind::Or, std::move(left), std::move(right));
  }
  return left;
}

ExprPtr ExpressionParser::conjunction() {
  ExprPtr left = negation();
  while (skip_name("and")) {
    ExprPtr right = negation();
    left = binary(ExprKind::And, std::move(left), std::move(right));
  }
  return left;
}

ExprPtr ExpressionParser::negation() {
  if (!is_name("not")) return comparison();
  const Nested nested(*this);
  const int line = current().line;
  advance();
  return unary(ExprKind::Not, line, negation());
}

ExprPtr ExpressionParser::comparison() {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::Equal},     {"!=", CompareOp::NotEqual}, {"<", CompareOp::Less},
      {"<=", CompareOp::LessEqual}, {">", CompareOp::Greater},   {">=", CompareOp::GreaterEqual}};
  ExprPtr first = sum();
  ExprPtr out;
  while (true) {
    const auto* op =
        std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& o) { return is_operator(o.first); });
    CompareOp found = CompareOp::In;
    if (op != std::end(kOps)) {
      found = op->second;
      advance();
    } else if (is_name("not") && ahead().kind == TokenKind::Name && ahead().text == "in") {
      found = CompareOp::NotIn;
      advance();
      advance();
    } else if (!skip_name("in")) {
      break;
    }
    if (!out) {
      out = node(ExprKind::Compare, first->line);
      add(*out, std::move(first));
    }
    out->ops.push_back(found);
    add(*out, sum());
  }
  return out ? std::move(out) : std::move(first);
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concatenation();
  while (is_operator("+") || is_operator("-")) {
    const ExprKind kind = is_operator("+") ? ExprKind::Add : ExprKind::Subtract;
    advance();
    ExprPtr right = concatenation();
    left = binary(kind, std::move(left), std::move(right));
  }
  return left;
}

ExprPtr ExpressionParser::concatenation() {
  ExprPtr first = product();
  if (!is_operator("~")) return first;
  ExprPtr out = node(ExprKind::Concat, first->line);
  add(*out, std::move(first));
  while (skip_operator("~")) add(*out, product());
  return out;
}

ExprPtr ExpressionParser::product() {
  static constexpr std::pair<std::string_view, ExprKind> kOps[] = {
      {"*", ExprKind::Multiply}, {"/", ExprKind::Divide}, {"//", ExprKind::FloorDivide}, {"%", ExprKind::Modulo}};
  ExprPtr left = power();
  while (true) {
    const auto* op =
        std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& o) { return is_operator(o.first); });
    if (op == std::end(kOps)) return left;
    advance();
    ExprPtr right = power();
    left = binary(op->second, std::move(left), std::move(right));
  }
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = prefixed();
  while (skip_operator("**")) {
    ExprPtr right = prefixed();
    left = binary(ExprKind::Power, std::move(left), std::move(right));
  }
  return left;
}

ExprPtr ExpressionParser::prefixed(bool with_filters) {
  const int line = current().line;
  ExprPtr out;
  if (is_operator("-") || is_operator("+")) {
    const Nested nested(*this);
    const ExprKind kind = is_operator("-") ? ExprKind::Negative : ExprKind::Positive;
    advance();
    out = unary(kind, line, prefixed(false));
  } else {
    out = primary();
  }
  out = postfix(std::move(out));
  return with_filters ? filters_and_tests(std::move(out)) : std::move(out);
}

ExprPtr ExpressionParser::name_or_constant(bool attributes) {
  const Token& token = current();
  const std::string name = token.text;
  const int line = token.line;
  advance();
  ExprPtr out = node(ExprKind::Const, line);
  if (name == "true" || name == "True")
    out->value = Value::boolean(true);
  else if (name == "false" || name == "False")
    out->value = Value::boolean(false);
  else if (name == "none" || name == "None")
    out->value = Value::none();
  else {
    out->kind = ExprKind::Name;
    out->text = name;
    if (attributes && skip_operator(".")) {
      out->kind = ExprKind::NamespaceRef;
      out->attribute = expect_any_name();
    }
  }
  return out;
}

ExprPtr ExpressionParser::primary(bool attributes) {
  const Token& token = current();
  const int line = token.line;
  if (token.kind == TokenKind::Name) return name_or_constant(attributes);
  if (token.kind == TokenKind::String) {
    std::string all;
    for (; current().kind == TokenKind::String; advance()) all += current().text;
    ExprPtr out = node(ExprKind::Const, line);
    out->value = Value::text(std::move(all));
    return out;
  }
  if (token.kind == TokenKind::Number) {
    ExprPtr out = node(ExprKind::Const, line);
    out->value = token.number;
    advance();
    return out;
  }
  if (is_operator("[")) return list();
  if (is_operator("{")) return dict();
  if (!skip_operator("(")) fail(fmt::format("unexpected '{}'", described(token)), line);
  ExprPtr out = tuple(true, "", true);
  expect_operator(")");
  return out;
}

bool ExpressionParser::at_tuple_end(std::string_view end) const {
  return current().kind == TokenKind::VariableEnd || current().kind == TokenKind::BlockEnd || is_operator(")") ||
         (!end.empty() && is_name(end));
}

ExprPtr ExpressionParser::tuple(bool with_condition, std::string_view end, bool in_parentheses) {
  ExprPtr out = node(ExprKind::Tuple, current().line);
  bool is_tuple = false;
  while (true) {
    if (!out->items.empty()) expect_operator(",");
    if (at_tuple_end(end)) break;
    add(*out, expression(with_condition));
    if (!is_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return out;
  if (!out->items.empty()) return std::move(out->items[0]);
  if (!in_parentheses) fail(fmt::format("Expected an expression, got '{}'", described(current())), current().line);
  return out;
}

ExprPtr ExpressionParser::target(std::string_view end, bool attributes) {
  ExprPtr out = node(ExprKind::Tuple, current().line);
  bool is_tuple = false;
  while (true) {
    if (!out->items.empty()) expect_operator(",");
    if (at_tuple_end(end)) break;
    add(*out, primary(attributes));
    if (!is_operator(",")) break;
    is_tuple = true;
  }
  if (out->items.empty()) fail(fmt::format("Expected an expression, got '{}'", described(current())), current().line);
  if (!is_tuple) out = std::move(out->items[0]);
  set_use(*out, NameUse::Store);
  return out;
}

void ExpressionParser::set_use(Expr& target, NameUse use) {
  target.use = use;
  if (target.kind == ExprKind::Tuple)
    for (const ExprPtr& item : target.items) set_use(*item, use);
  else if (target.kind != ExprKind::Name && target.kind != ExprKind::NamespaceRef)
    throw SyntaxFailure{target.line, "can't assign to this expression"};
}

ExprPtr ExpressionParser::name_target() {
  const int line = current().line;
  ExprPtr out = node(ExprKind::Name, line);
  out->text = expect_any_name();
  out->use = NameUse::Store;
  for (const char* constant : {"true", "false", "none", "True", "False", "None"})
    if (out->text == constant) fail("can't assign to 'const'", line);
  return out;
}

ExprPtr ExpressionParser::list() {
  ExprPtr out = node(ExprKind::List, current().line);
  expect_operator("[");
  while (!is_operator("]")) {
    if (!out->items.empty()) expect_operator(",");
    if (is_operator("]")) break;
    add(*out, expression());
  }
  expect_operator("]");
  return out;
}

ExprPtr ExpressionParser::dict() {
  ExprPtr out = node(ExprKind::Dict, current().line);
  expect_operator("{");
  while (!is_operator("}")) {
    if (!out->items.empty()) expect_operator(",");
    if (is_operator("}")) break;
    add(*out, expression());
    expect_operator(":");
    add(*out, expression());
  }
  expect_operator("}");
  return out;
}

ExprPtr ExpressionParser::postfix(ExprPtr out) {
  while (true) {
    if (is_operator("."))
      out = attribute(std::move(out));
    else if (is_operator("["))
      out = subscript(std::move(out));
    else if (is_operator("("))
      out = call(std::move(out));
    else
      return out;
  }
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr out) {
  while (true) {
    if (is_operator("|"))
      out = filters(std::move(out));
    else if (is_name("is"))
      out = test(std::move(out));
    else if (is_operator("("))
      out = call(std::move(out));
    else
      return out;
  }
}

ExprPtr ExpressionParser::attribute(ExprPtr of) {
  const int line = current().line;
  advance();
  const Token& name = current();
  ExprPtr out;
  if (name.kind == TokenKind::Name) {
    out = unary(ExprKind::Attribute, line, std::move(of));
    out->text = name.text;
  } else if (name.integer()) {
    ExprPtr index = node(ExprKind::Const, line);
    index->value = name.number;
    out = binary(ExprKind::Item, std::move(of), std::move(index));
  } else {
    fail("expected name or number", name.line);
  }
  advance();
  return out;
}

ExprPtr ExpressionParser::subscript(ExprPtr of) {
  const int line = current().line;
  advance();
  ExprPtr index = node(ExprKind::Tuple, line);
  while (!is_operator("]")) {
    if (!index->items.empty()) expect_operator(",");
    add(*index, subscribed());
  }
  expect_operator("]");
  if (index->items.size() != 1) {
    for (const ExprPtr& item : index->items)
      if (item->kind == ExprKind::Slice) fail("a slice cannot stand beside other subscripts", line);
    return binary(ExprKind::Item, std::move(of), std::move(index));
  }
  ExprPtr only = std::move(index->items[0]);
  if (only->kind != ExprKind::Slice) return binary(ExprKind::Item, std::move(of), std::move(only));
  grow(*only, *of);
  only->items[0] = std::move(of);
  return only;
}

// An index, or a slice whose first item, what is sliced, is left null.
ExprPtr ExpressionParser::subscribed() {
  ExprPtr slice = node(ExprKind::Slice, current().line);
  slice->items.push_back(nullptr);
  const auto ends = [&] { return is_operator("]") || is_operator(",") || is_operator(":"); };
  if (!is_operator(":")) {
    ExprPtr first = expression();
    if (!is_operator(":")) return first;
    add(*slice, std::move(first));
  } else {
    slice->items.push_back(nullptr);
  }
  advance();
  add(*slice, ends() ? nullptr : expression());
  add(*slice, skip_operator(":") && !ends() ? expression() : nullptr);
  return slice;
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  ExprPtr out = unary(ExprKind::Call, current().line, std::move(callee));
  arguments(*out);
  return out;
}

void ExpressionParser::arguments(Expr& out) {
  const int line = current().line;
  const auto ensure = [&](bool good) {
    if (!good) fail("invalid syntax for function call expression", line);
  };
  expect_operator("(");
  for (bool first = true; !is_operator(")"); first = false) {
    if (!first) {
      expect_operator(",");
      if (is_operator(")")) break;
    }
    if (skip_operator("*")) {
      ensure(!out.more_positional && !out.more_named);
      out.more_positional = expression();
      grow(out, *out.more_positional);
    } else if (skip_operator("**")) {
      ensure(!out.more_named);
      out.more_named = expression();
      grow(out, *out.more_named);
    } else if (current().kind == TokenKind::Name && ahead().kind == TokenKind::Operator && ahead().text == "=") {
      ensure(!out.more_named);
      std::string name = current().text;
      if (out.named.size() == kMostArguments) fail("a call has too many arguments", line);
      for (const auto& other : out.named)
        if (other.first == name) fail(fmt::format("keyword argument repeated: {}", name), current().line);
      advance();
      advance();
      out.named.emplace_back(std::move(name), expression());
      grow(out, *out.named.back().second);
    } else {
      ensure(!out.more_positional && !out.more_named && out.named.empty());
      out.positional.push_back(expression());
      grow(out, *out.positional.back());
    }
  }
  expect_operator(")");
}

ExprPtr ExpressionParser::filters(ExprPtr out, bool first_inline) {
  while (first_inline || is_operator("|")) {
    if (!first_inline) advance();
    first_inline = false;
    const int line = current().line;
    std::string name = expect_any_name();
    while (skip_operator(".")) name += "." + expect_any_name();
    out = unary(ExprKind::Filter, line, std::move(out));
    out->text = std::move(name);
    if (is_operator("(")) arguments(*out);
  }
  return out;
}

ExprPtr ExpressionParser::test(ExprPtr of) {
  const int line = current().line;
  advance();
  const bool negated = skip_name("not");
  ExprPtr out = unary(ExprKind::Test, line, std::move(of));
  out->text = expect_any_name();
  while (skip_operator(".")) out->text += "." + expect_any_name();
  const Token& token = current();
  if (is_operator("(")) {
    arguments(*out);
  } else if ((token.kind == TokenKind::Name && !is_name("else") && !is_name("or") && !is_name("and")) ||
             token.kind == TokenKind::String || token.kind == TokenKind::Number || is_operator("[") ||
             is_operator("{")) {
    if (is_name("is")) fail("You cannot chain multiple tests with is", token.line);
    const Nested nested(*this);
    out->positional.push_back(postfix(primary()));
    grow(*out, *out->positional[0]);
  }
  return negated ? unary(ExprKind::Not, line, std::move(out)) : std::move(out);
}

}  // namespace hierarchos::jinja
