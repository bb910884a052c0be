#include "template/filters.h"

#include <array>

#include "template/interpreter.h"
#include "template/text.h"

namespace hierarchos::jinja {

FilterFunction find_filter(const std::string& name) {
  static const std::array kTables = {&text_filters(), &html_filters(), &number_filters(), &sequence_filters(),
                                     &selection_filters()};
  for (const FilterTable* table : kTables) {
    const auto found = table->find(name);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

Value ignoring_case(const Value& v) { return v.is_text() ? Value::text(text::lower(v.str()), v.is_markup()) : v; }

AttributeGetter::AttributeGetter(const Value& attribute, bool ignore_case, Value fallback)
    : ignore_case_(ignore_case), fallback_(std::move(fallback)) {
  if (attribute.missing() || attribute.is_none()) return;
  if (!attribute.is_text()) {
    path_.push_back(attribute);
    return;
  }
  for (std::string& part : text::split(attribute.str(), ".", -1, false)) {
    const bool index = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    path_.push_back(index ? Value::integer(*BigInt::parse(part)) : Value::text(std::move(part)));
  }
}

Value AttributeGetter::operator()(const Value& item) const {
  Value v = item;
  for (const Value& key : path_) {
    v = get_item(v, key);
    if (v.is_undefined() && !fallback_.missing() && !fallback_.is_none()) v = fallback_;
  }
  return ignore_case_ ? ignoring_case(v) : v;
}

}  // namespace hierarchos::jinja
