#include "template/parser.h"

#include <algorithm>

#include "template/parser_base.h"

namespace hierarchos::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Syntax run() {
    Syntax out;
    out.body = statements({});
    out.blocks = std::move(blocks_);
    return out;
  }

 private:
  // Data, outputs and tags up to a tag that is named in `ends`, which becomes the current token.
  Body statements(const std::vector<std::string>& ends) {
    const Nested nested(*this);
    Body body;
    StmtPtr output;  // neighbouring outputs are one statement
    ends_.push_back(ends);
    while (current().kind != TokenKind::End) {
      const Token& token = current();
      if (token.kind == TokenKind::Data) {
        body.push_back(statement(StmtKind::Text, token.line));
        body.back()->text = token.text;
        advance();
      } else if (token.kind == TokenKind::VariableBegin) {
        body.push_back(statement(StmtKind::Output, token.line));
        advance();
        body.back()->exprs.push_back(tuple());
        body.back()->escape = escape_;
        expect(TokenKind::VariableEnd);
      } else {
        advance();
        if (current().kind == TokenKind::Name && std::find(ends.begin(), ends.end(), current().text) != ends.end()) {
          ends_.pop_back();
          return body;
        }
        body.push_back(tag());
        expect(TokenKind::BlockEnd);
      }
    }
    if (!ends.empty()) unexpected_end();
    ends_.pop_back();
    return body;
  }

  // The body of a tag: from the end of the tag on. The tag that ends it is left current.
  Body body_until(const std::vector<std::string>& ends) {
    skip_operator(":");
    expect(TokenKind::BlockEnd);
    return statements(ends);
  }
  Body whole_body(const std::string& end) {
    Body body = body_until({end});
    advance();
    return body;
  }

  StmtPtr statement(StmtKind kind, int line) const { return std::make_unique<Stmt>(kind, line); }

  StmtPtr tag() {
    const Token token = current();
    if (token.kind != TokenKind::Name) fail("tag name expected", token.line);
    using Parse = StmtPtr (Parser::*)(int);
    static const std::map<std::string, Parse, std::less<>> kTags = {{"for", &Parser::for_tag},
                                                                    {"if", &Parser::if_tag},
                                                                    {"block", &Parser::block_tag},
                                                                    {"extends", &Parser::load_tag},
                                                                    {"include", &Parser::load_tag},
                                                                    {"import", &Parser::import_tag},
                                                                    {"from", &Parser::from_tag},
                                                                    {"print", &Parser::print_tag},
                                                                    {"macro", &Parser::macro_tag},
                                                                    {"set", &Parser::set_tag},
                                                                    {"with", &Parser::with_tag},
                                                                    {"autoescape", &Parser::autoescape_tag},
                                                                    {"call", &Parser::call_tag},
                                                                    {"filter", &Parser::filter_tag},
                                                                    {"break", &Parser::jump_tag},
                                                                    {"continue", &Parser::jump_tag},
                                                                    {"generation", &Parser::generation_tag}};
    const auto parse = kTags.find(token.text);
    if (parse == kTags.end()) unknown_tag(token);
    tags_.push_back(token.text);
    StmtPtr out = (this->*parse->second)(token.line);
    tags_.pop_back();
    return out;
  }

  StmtPtr for_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::For, line);
    out->loop = std::make_unique<ForCode>();
    ForCode& code = *out->loop;
    code.target = target("in", false);
    expect_name("in");
    code.iterable = tuple(false, "recursive");
    if (skip_name("if")) code.condition = expression();
    code.recursive = skip_name("recursive");
    const int loops = std::exchange(loops_, loops_ + 1);
    code.body = body_until({"endfor", "else"});
    loops_ = loops;
    const bool otherwise = current().text == "else";
    advance();
    if (code.recursive) loops_ = 0;  // what follows is inside a function of the loop's own
    if (otherwise) code.otherwise = whole_body("endfor");
    loops_ = loops;
    return out;
  }

  StmtPtr if_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::If, line);
    while (true) {
      out->exprs.push_back(tuple(false));
      out->bodies.push_back(body_until({"elif", "else", "endif"}));
      const std::string end = current().text;
      advance();
      if (end == "elif") continue;
      out->bodies.push_back(end == "else" ? whole_body("endif") : Body());
      return out;
    }
  }

  StmtPtr jump_tag(int line) {
    const bool is_break = current().text == "break";
    if (loops_ == 0) fail(fmt::format("'{}' outside loop", current().text), line);
    advance();
    return statement(is_break ? StmtKind::Break : StmtKind::Continue, line);
  }

  StmtPtr print_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::Output, line);
    out->escape = escape_;
    while (current().kind != TokenKind::BlockEnd) {
      if (!out->exprs.empty()) expect_operator(",");
      out->exprs.push_back(expression());
    }
    return out;
  }

  StmtPtr set_tag(int line) {
    advance();
    ExprPtr to = target("", true);
    if (skip_operator("=")) {
      StmtPtr out = statement(StmtKind::Set, line);
      out->exprs.push_back(std::move(to));
      out->exprs.push_back(tuple());
      return out;
    }
    StmtPtr out = statement(StmtKind::SetBlock, line);
    out->exprs.push_back(std::move(to));
    out->exprs.push_back(filters(nullptr));
    out->bodies.push_back(whole_body("endset"));
    return out;
  }

  StmtPtr with_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::With, line);
    out->with = std::make_unique<With>();
    while (current().kind != TokenKind::BlockEnd) {
      if (!out->with->targets.empty()) expect_operator(",");
      ExprPtr to = target("", false);
      set_use(*to, NameUse::Parameter);
      out->with->targets.push_back(std::move(to));
      expect_operator("=");
      out->with->values.push_back(expression());
    }
    out->bodies.push_back(whole_body("endwith"));
    return out;
  }

  StmtPtr autoescape_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::Autoescape, line);
    out->exprs.push_back(expression());
    const Expr& flag = *out->exprs[0];
    const Escape inside = flag.kind != ExprKind::Const ? Escape::AtRuntime
                          : truthy(flag.value)         ? Escape::Yes
                                                       : Escape::No;
    const Escape outside = std::exchange(escape_, inside);
    out->bodies.push_back(whole_body("endautoescape"));
    escape_ = outside;
    return out;
  }

  StmtPtr block_tag(int line) {
    advance();
    auto code = std::make_shared<BlockCode>();
    code->line = line;
    code->name = expect_any_name();
    code->scoped = skip_name("scoped");
    code->required = skip_name("required");
    const int loops = std::exchange(loops_, 0);
    if (!blocks_.emplace(code->name, code).second) fail(fmt::format("block '{}' defined twice", code->name), line);
    code->body = whole_body("endblock");
    loops_ = loops;
    skip_name(code->name);
    if (code->required)
      for (const StmtPtr& part : code->body)
        if (part->kind != StmtKind::Text || part->text.find_first_not_of(" \t\n\r\f\v") != std::string::npos)
          fail("Required blocks can only contain comments or whitespace", line);
    StmtPtr out = statement(StmtKind::Block, line);
    out->block = std::move(code);
    return out;
  }

  // Tags that need other templates are parsed, and fail when they are executed.
  StmtPtr load_tag(int line) {
    StmtPtr out = statement(StmtKind::Load, line);
    const bool include = current().text == "include";
    out->text = current().text;
    advance();
    out->exprs.push_back(expression());
    if (include && skip_name("ignore")) expect_name("missing");
    if (include) import_context();
    return out;
  }
  bool import_context() {
    if (!(is_name("with") || is_name("without")) || !(ahead().kind == TokenKind::Name && ahead().text == "context"))
      return false;
    advance();
    advance();
    return true;
  }
  StmtPtr import_tag(int line) {
    StmtPtr out = load_tag(line);
    expect_name("as");
    out->names.push_back(expect_any_name());
    import_context();
    return out;
  }
  StmtPtr from_tag(int line) {
    StmtPtr out = load_tag(line);
    expect_name("import");
    while (!import_context()) {
      std::string name = expect_any_name();
      if (name[0] == '_') fail("names starting with an underline can not be imported", line);
      if (skip_name("as")) name = expect_any_name();
      out->names.push_back(std::move(name));
      if (import_context() || !skip_operator(",")) break;
    }
    return out;
  }

  void signature(MacroCode& code) {
    expect_operator("(");
    while (!is_operator(")")) {
      if (!code.parameters.empty()) expect_operator(",");
      ExprPtr parameter = name_target();
      parameter->use = NameUse::Parameter;
      if (code.parameters.size() == 1000) fail("a macro has too many parameters", parameter->line);
      for (const ExprPtr& other : code.parameters)
        if (other->text == parameter->text)
          fail(fmt::format("duplicate argument '{}' in macro definition", parameter->text), parameter->line);
      if (skip_operator("="))
        code.defaults.push_back(expression());
      else if (!code.defaults.empty())
        fail("non-default argument follows default argument", current().line);
      code.explicit_caller = code.explicit_caller || parameter->text == "caller";
      code.parameters.push_back(std::move(parameter));
    }
    expect_operator(")");
  }

  void macro_body(MacroCode& code, const std::string& end) {
    const int loops = std::exchange(loops_, 0);
    code.body = whole_body(end);
    loops_ = loops;
  }

  StmtPtr macro_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::Macro, line);
    out->macro = std::make_unique<MacroCode>();
    out->macro->line = line;
    out->macro->name = name_target()->text;
    signature(*out->macro);
    macro_body(*out->macro, "endmacro");
    return out;
  }

  StmtPtr call_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::CallBlock, line);
    out->macro = std::make_unique<MacroCode>();
    out->macro->line = line;
    if (is_operator("(")) signature(*out->macro);
    out->exprs.push_back(expression());
    if (out->exprs[0]->kind != ExprKind::Call) fail("expected call", line);
    macro_body(*out->macro, "endcall");
    return out;
  }

  StmtPtr generation_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::Generation, line);
    out->macro = std::make_unique<MacroCode>();
    out->macro->line = line;
    macro_body(*out->macro, "endgeneration");
    return out;
  }

  StmtPtr filter_tag(int line) {
    advance();
    StmtPtr out = statement(StmtKind::FilterBlock, line);
    out->exprs.push_back(filters(nullptr, true));
    out->bodies.push_back(whole_body("endfilter"));
    return out;
  }

  std::string looking_for() const {
    std::string out;
    for (const std::string& end : ends_.back()) out += (out.empty() ? "'" : " or '") + end + "'";
    return out;
  }
  [[noreturn]] void end_error(std::string message, int line) const {
    if (!tags_.empty()) message += fmt::format(" The innermost block that needs to be closed is '{}'.", tags_.back());
    fail(message, line);
  }
  [[noreturn]] void unexpected_end() const {
    end_error(fmt::format("Unexpected end of template. Jinja was looking for the following tags: {}.", looking_for()),
              current().line);
  }
  [[noreturn]] void unknown_tag(const Token& token) const {
    std::string message = fmt::format("Encountered unknown tag '{}'.", token.text);
    if (!ends_.back().empty()) message += fmt::format(" Jinja was looking for the following tags: {}.", looking_for());
    end_error(std::move(message), token.line);
  }

  int loops_ = 0;  // around what is parsed, in this function
  std::vector<std::string> tags_;
  std::vector<std::vector<std::string>> ends_;
  std::map<std::string, std::shared_ptr<BlockCode>> blocks_;
};

}  // namespace

Syntax parse(std::string_view source, const Limits& limits) { return Parser(tokenize(source), limits).run(); }

}  // namespace hierarchos::jinja
