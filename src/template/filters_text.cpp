// Filters that work on text.
#include <algorithm>

#include "template/arguments.h"
#include "template/filters.h"
#include "template/format.h"
#include "template/interpreter.h"
#include "template/methods.h"
#include "template/print.h"
#include "template/text.h"
#include "template/unicode.h"
#include "template/wrap.h"

namespace hierarchos::jinja {
namespace {

Value as_method(const char* name, const Value& input, Arguments& arguments) {
  return text_method(name)(soft_str(input), arguments);
}

Value upper(Interpreter&, const Value& input, Arguments& arguments) { return as_method("upper", input, arguments); }
Value lower(Interpreter&, const Value& input, Arguments& arguments) { return as_method("lower", input, arguments); }
Value capitalize(Interpreter&, const Value& input, Arguments& arguments) {
  return as_method("capitalize", input, arguments);
}

Value trim(Interpreter&, const Value& input, Arguments& arguments) {
  Arguments characters{bind("trim", arguments, {"chars"}, 0), {}};
  return as_method("strip", input, characters);
}

Value center(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("center", arguments, {"width"}, 0);
  Arguments width{{a[0].missing() ? Value::integer(80) : a[0]}, {}};
  return as_method("center", input, width);
}

Value string(Interpreter&, const Value& input, Arguments& arguments) {
  bind("string", arguments, {}, 0);
  return soft_str(input);
}

Value title(Interpreter&, const Value& input, Arguments& arguments) {
  bind("title", arguments, {}, 0);
  const std::string s = str(input);
  charge(s.size() * 16);
  std::string out;
  const auto begins_word = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || unicode::is_space(c);
  };
  for (size_t at = 0; at < s.size();) {
    const char32_t c = text::next(s, at);
    if (begins_word(c)) {
      text::append(out, c);
      continue;
    }
    out += text::encode(unicode::upper(c));
    const size_t rest = at;
    size_t end = at;
    while (at < s.size() && !begins_word(text::next(s, at))) end = at;
    out += text::lower(std::string_view(s).substr(rest, end - rest));
    at = end;
  }
  return Value::text(std::move(out));
}

Value replace(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  const Values a = bind("replace", arguments, {"old", "new", "count"}, 2);
  const int64_t count = a[2].is_none() ? -1 : integer_or(a[2], -1);
  if (!interpreter.autoescape()) return Value::text(text::replace(str(input), str(a[0]), str(a[1]), count));
  const bool escapes = a[0].is_markup() || (a[1].is_markup() && !input.is_markup());
  const Value s = escapes ? escape(input) : soft_str(input);
  const std::string to = s.is_markup() ? escape(a[1]).str() : str(a[1]);
  return Value::text(text::replace(s.str(), str(a[0]), to, count), s.is_markup());
}

Value format(Interpreter&, const Value& input, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time");
  if (arguments.named.empty()) return percent_format(soft_str(input), Value::tuple(std::move(arguments.positional)));
  std::vector<std::pair<Value, Value>> fields;
  for (auto& [name, value] : arguments.named) fields.emplace_back(Value::text(name), std::move(value));
  return percent_format(soft_str(input), Value::dict(std::move(fields)));
}

const std::string& need_text(const Value& v, const char* filter) {
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is_text()) type_error("{} needs a text, not {}", filter, type_name(v));
  return v.str();
}

Value indent(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("indent", arguments, {"width", "first", "blank"}, 0);
  const std::string& s = need_text(input, "indent");
  const bool first = truth_or(a[1], false), blank = truth_or(a[2], false);
  std::string indention;
  if (a[0].is_text()) {
    indention = a[0].str();
  } else {
    const int64_t width = std::max<int64_t>(0, integer_or(a[0], 4));
    check_text_size(static_cast<size_t>(width));
    indention.assign(static_cast<size_t>(width), ' ');
  }
  const std::vector<std::string> lines = text::splitlines(s + "\n", false);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if (i == 0 ? first : blank || !lines[i].empty()) out += indention;
    out += lines[i];
    check_text_size(out.size());
  }
  return Value::text(std::move(out), input.is_markup());
}

Value truncate(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0);
  const bool fraction = a[0].is(Type::Float);  // will do where nothing has to be cut
  const int64_t size =
      fraction ? static_cast<int64_t>(a[0].as_float() > 0 ? std::min(a[0].as_float(), 1e9) : 0) : integer_or(a[0], 255);
  const std::string end = a[2].missing() ? "..." : text_of(a[2], "end");
  const auto end_length = static_cast<int64_t>(text::length(end));
  const int64_t leeway = a[3].is_none() ? 5 : integer_or(a[3], 5);
  if (size < end_length) fail("AssertionError", "expected length >= {}, got {}", end_length, size);
  if (leeway < 0) fail("AssertionError", "expected leeway >= 0, got {}", leeway);
  const auto have = length(input);
  if (!have) type_error("object of type '{}' has no len()", type_name(input));
  if (*have - size <= leeway) return input;
  if (fraction) type_error("slice indices must be integers or None or have an __index__ method");
  const std::string head =
      text::slice(need_text(input, "truncate"), 0, 1, size - end_length, input.text_object().ascii());
  if (truth_or(a[1], false)) return Value::text(head + end, input.is_markup());
  return Value::text(text::split(head, " ", 1, true)[0] + end, input.is_markup());
}

Value word_count(Interpreter&, const Value& input, Arguments& arguments) {
  bind("wordcount", arguments, {}, 0);
  const std::string s = str(input);
  charge(s.size() * 4);
  int64_t count = 0;
  bool in_word = false;
  for (size_t at = 0; at < s.size();) {
    const bool word = unicode::is_word(text::next(s, at));
    count += word && !in_word;
    in_word = word;
  }
  return Value::integer(count);
}

Value word_wrap(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("wordwrap", arguments, {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0);
  const std::string& s = need_text(input, "wordwrap");
  const std::string wrap = a[2].missing() || a[2].is_none() ? "\n" : text_of(a[2], "wrapstring");
  std::string out;
  bool first = true;
  for (const std::string& paragraph : text::splitlines(s, false)) {
    if (!first) out += wrap;
    first = false;
    const auto lines = wrap_lines(paragraph, integer_or(a[0], 79), truth_or(a[1], true), truth_or(a[3], true));
    for (size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? wrap : "") + lines[i];
    check_text_size(out.size());
  }
  return Value::text(std::move(out));
}

Value to_json_filter(Interpreter&, const Value& input, Arguments& arguments) {
  const Values a = bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ensure_ascii = truth_or(a[0], false);
  style.sort_keys = truth_or(a[3], false);
  if (a[1].is_text()) {
    style.indent = a[1].str();
  } else if (!a[1].missing() && !a[1].is_none()) {
    const int64_t width = std::max<int64_t>(0, integer_or(a[1], 0));
    check_text_size(static_cast<size_t>(width));
    style.indent = std::string(static_cast<size_t>(width), ' ');
  }
  if (!a[2].missing() && !a[2].is_none()) {
    const Values separators = to_values(a[2]);
    if (separators.size() != 2) value_error("separators must be two texts");
    style.item_separator = text_of(separators[0], "a separator");
    style.key_separator = text_of(separators[1], "a separator");
  }
  return Value::text(to_json(input, style));
}

Value pprint(Interpreter&, const Value& input, Arguments& arguments) {
  bind("pprint", arguments, {}, 0);
  return Value::text(pretty(input));
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable kTable = {
      {"capitalize", capitalize}, {"center", center},         {"format", format},      {"indent", indent},
      {"lower", lower},           {"pprint", pprint},         {"replace", replace},    {"string", string},
      {"title", title},           {"tojson", to_json_filter}, {"trim", trim},          {"truncate", truncate},
      {"upper", upper},           {"wordcount", word_count},  {"wordwrap", word_wrap},
  };
  return kTable;
}

}  // namespace hierarchos::jinja
