// How values are written: Python's str() and repr(), and JSON.
#pragma once

#include <optional>
#include <string>

#include "template/value.h"

namespace hierarchos::jinja {

std::string float_repr(double v);
std::string text_repr(std::string_view utf8);
std::string repr(const Value& v);
std::string str(const Value& v);
// str(v) as a value, but a text itself (so that Markup stays one): markupsafe's soft_str.
Value soft_str(const Value& v);
// With the five characters that HTML gives a meaning written as references.
std::string escape_html(std::string_view s);
Value escape(const Value& v);

// As json.dumps writes it, with the options that the filter of chat templates has.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level
  std::optional<std::string> item_separator, key_separator;
};
std::string to_json(const Value& v, const JsonStyle& style);

}  // namespace hierarchos::jinja
