// Cuts a template into tokens, with trim_blocks and lstrip_blocks on, as chat templates are rendered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "template/value.h"

namespace hierarchos::jinja {

enum class TokenKind : uint8_t {
  Data,
  BlockBegin,
  BlockEnd,
  VariableBegin,
  VariableEnd,
  Name,
  String,
  Number,
  Operator,
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  int line = 1;
  std::string text;  // data, name, contents of a string, operator
  Value number;      // integer or float
  bool integer() const { return kind == TokenKind::Number && number.is_integral(); }
};

// A syntax error, with the line that it is in.
struct SyntaxFailure {
  int line;
  std::string message;
  std::string kind = "TemplateSyntaxError";
};

// The last token is End. Throws SyntaxFailure.
std::vector<Token> tokenize(std::string_view source);

}  // namespace hierarchos::jinja
