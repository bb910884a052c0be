// Jinja2's built-in filters and tests, with transformers' tojson.
#pragma once

#include <map>
#include <string>

#include "template/value.h"

namespace hierarchos::jinja {

class Interpreter;

using FilterFunction = Value (*)(Interpreter& interpreter, const Value& input, Arguments& arguments);
using TestFunction = bool (*)(Interpreter& interpreter, const Value& input, Arguments& arguments);

// Null when there is none of this name.
FilterFunction find_filter(const std::string& name);
TestFunction find_test(const std::string& name);

// Tables by subject, each in a file of its own.
using FilterTable = std::map<std::string, FilterFunction>;
const FilterTable& text_filters();
const FilterTable& html_filters();
const FilterTable& number_filters();
const FilterTable& sequence_filters();
const FilterTable& selection_filters();

// Looks an attribute such as "a.b.0" up, as filters take it: a path, an index, or none for the item itself.
class AttributeGetter {
 public:
  AttributeGetter(const Value& attribute, bool ignore_case, Value fallback = {});
  Value operator()(const Value& item) const;

 private:
  Values path_;
  bool ignore_case_;
  Value fallback_;  // for what is undefined; missing where there is none
};
Value ignoring_case(const Value& v);  // a text in lower case, anything else as it is

std::string pretty(const Value& v);  // pprint.pformat
std::string unescape_html(std::string_view s);
std::string urlize(const std::string& text, std::optional<int64_t> limit, const std::string& rel,
                   const std::string& target, const std::vector<std::string>& schemes);

}  // namespace hierarchos::jinja
