// Filters that make HTML and URLs.
#include <algorithm>

#include "template/arguments.h"
#include "template/filters.h"
#include "template/interpreter.h"
#include "template/print.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

Value escape_filter(Interpreter&, const Value& input, Arguments& arguments) {
  bind("escape", arguments, {}, 0);
  return escape(input);
}

Value force_escape(Interpreter&, const Value& input, Arguments& arguments) {
  bind("forceescape", arguments, {}, 0);
  return Value::text(escape_html(str(input)), true);
}

Value safe(Interpreter&, const Value& input, Arguments& arguments) {
  bind("safe", arguments, {}, 0);
  return Value::text(str(input), true);
}

Value strip_tags(Interpreter&, const Value& input, Arguments& arguments) {
  bind("striptags", arguments, {}, 0);
  const std::string s = str(input);
  std::string out;
  size_t at = 0;
  for (size_t start; (start = s.find('<', at)) != std::string::npos;) {
    const bool comment = s.compare(start, 4, "<!--") == 0;
    const size_t end = comment ? s.find("-->", start + 4) : s.find('>', start);
    if (end == std::string::npos) break;
    out.append(s, at, start - at);
    at = end + (comment ? 3 : 1);
  }
  out.append(s, at);
  std::string words;
  for (const std::string& word : text::split_space(out, -1, false)) words += (words.empty() ? "" : " ") + word;
  return Value::text(unescape_html(words));
}

std::string quoted(const Value& v, bool query) {
  const std::string s = str(v);
  charge(s.size() * 16);
  std::string out;
  for (const char c : s) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !query);
    if (plain)
      out += c;
    else if (c == ' ' && query)
      out += '+';
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Value url_encode(Interpreter&, const Value& input, Arguments& arguments) {
  bind("urlencode", arguments, {}, 0);
  const Value pairs =
      input.is(Type::Dict) ? Value::object(Type::View, std::make_shared<View>(View::Kind::OfItems, input)) : input;
  const auto items = input.is_text() ? nullptr : try_iterate(pairs);
  if (!items) return Value::text(quoted(input, false));
  std::string out;
  while (const std::optional<Value> item = items->next()) {
    const Values pair = to_values(*item);
    if (pair.size() != 2) value_error("urlencode needs pairs of a key and a value");
    out += (out.empty() ? "" : "&") + quoted(pair[0], true) + "=" + quoted(pair[1], true);
    check_text_size(out.size());
  }
  return Value::text(std::move(out));
}

Value xml_attributes(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  const Values a = bind("xmlattr", arguments, {"autospace"}, 0);
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is(Type::Dict)) fail("AttributeError", "'{}' object has no attribute 'items'", type_name(input));
  std::string out;
  for (const auto& [key, value] : input.as_dict().items) {
    if (value.is_none() || value.is_undefined()) continue;
    if (text_of(key, "an attribute's name").find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      value_error("Invalid character in attribute name: {}", text_repr(key.str()));
    if (!out.empty()) out += " ";
    out += escape(key).str() + "=\"" + escape(value).str() + "\"";
    check_text_size(out.size());
  }
  if (truth_or(a[0], true) && !out.empty()) out.insert(0, " ");
  return Value::text(std::move(out), interpreter.autoescape());
}

Value urlize_filter(Interpreter& interpreter, const Value& input, Arguments& arguments) {
  const Values a = bind("urlize", arguments, {"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}, 0);
  std::vector<std::string> words = {"noopener"};
  if (a[3].is_text())
    for (std::string& word : text::split_space(a[3].str(), -1, false)) words.push_back(std::move(word));
  if (truth_or(a[1], false)) words.emplace_back("nofollow");
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::string rel;
  for (const std::string& word : words) rel += (rel.empty() ? "" : " ") + word;
  std::vector<std::string> schemes;
  if (!a[4].missing() && !a[4].is_none())
    for (const Value& scheme : to_values(a[4])) schemes.push_back(text_of(scheme, "a scheme"));
  std::optional<int64_t> limit;
  if (!a[0].missing() && !a[0].is_none()) limit = integer_or(a[0], 0);
  const std::string target = a[2].is_text() ? a[2].str() : "";
  return Value::text(urlize(escape(input).str(), limit, rel, target, schemes), interpreter.autoescape());
}

}  // namespace

const FilterTable& html_filters() {
  static const FilterTable kTable = {
      {"e", escape_filter},      {"escape", escape_filter}, {"forceescape", force_escape}, {"safe", safe},
      {"striptags", strip_tags}, {"urlencode", url_encode}, {"urlize", urlize_filter},     {"xmlattr", xml_attributes},
  };
  return kTable;
}

}  // namespace hierarchos::jinja
