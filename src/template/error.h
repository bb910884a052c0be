// What goes wrong in a template.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace hierarchos {

// A chat template that cannot be parsed or rendered. what() is a sentence with the template's name and line; a long
// message is cut there, and its control characters are written as escapes.
class TemplateError : public DataError {
 public:
  TemplateError(const std::string& where, int line, std::string kind, std::string message);

  int line() const { return line_; }                       // from 1
  const std::string& kind() const { return kind_; }        // as Python names it: "TypeError"; "Limit" is ours
  const std::string& message() const { return message_; }  // alone: what the template gave to raise_exception
  bool raised_by_template() const { return kind_ == "TemplateError"; }

 private:
  int line_;
  std::string kind_, message_;
};

namespace jinja {

// On its way out of the engine, which adds the line. Kinds are Python's names of exceptions.
struct Failure {
  std::string kind, message;
};

template <typename... Args>
[[noreturn]] void fail(const char* kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{kind, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
[[noreturn]] void type_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{"TypeError", fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
[[noreturn]] void value_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{"ValueError", fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
[[noreturn]] void limit_error(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{"Limit", fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace jinja
}  // namespace hierarchos
