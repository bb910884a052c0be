// Values as JSON, and JSON as values.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "template/json.h"
#include "template/print.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

std::string json_number_text(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  return float_repr(v);
}

std::string json_text(std::string_view s, bool ensure_ascii) {
  std::string out = "\"";
  for (size_t at = 0; at < s.size();) {
    const char32_t c = text::next(s, at);
    if (c == '"' || c == '\\')
      out += std::string("\\") + static_cast<char>(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\b')
      out += "\\b";
    else if (c == '\f')
      out += "\\f";
    else if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000))
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    else if (ensure_ascii && c >= 0x10000)
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + static_cast<uint32_t>(c >> 10),
                         0xDC00 + static_cast<uint32_t>(c & 0x3FF));
    else
      text::append(out, c);
  }
  return out + '"';
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style)
      : style_(style),
        item_separator_(style.item_separator.value_or(style.indent ? "," : ", ")),
        key_separator_(style.key_separator.value_or(": ")) {}

  std::string out;

  void write(const Value& v) {
    charge(256);
    check_text_size(out.size());
    switch (v.type()) {
      case Type::None:
        out += "null";
        break;
      case Type::Bool:
        out += v.as_bool() ? "true" : "false";
        break;
      case Type::Int:
        out += std::to_string(v.as_int());
        break;
      case Type::BigInt:
        out += v.get<BigIntObject>().value.text();
        break;
      case Type::Float:
        out += json_number_text(v.as_float());
        break;
      case Type::Str:
        out += json_text(v.str(), style_.ensure_ascii);
        break;
      case Type::List:
      case Type::Tuple:
        list(v.items());
        break;
      case Type::Dict:
        dict(v.as_dict().items);
        break;
      default:
        type_error("Object of type {} is not JSON serializable", type_name(v));
    }
  }

 private:
  void new_line() {
    if (!style_.indent) return;
    out += "\n";
    for (int i = 0; i < level_; ++i) {
      out += *style_.indent;
      check_text_size(out.size());
    }
  }

  void list(const Values& items) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += "[";
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += item_separator_;
      new_line();
      write(items[i]);
    }
    --level_;
    new_line();
    out += "]";
  }

  static std::string key_text(const Value& key) {
    switch (key.type()) {
      case Type::Str:
        return key.str();
      case Type::None:
        return "null";
      case Type::Bool:
        return key.as_bool() ? "true" : "false";
      case Type::Int:
      case Type::BigInt:
        return repr(key);
      case Type::Float:
        return json_number_text(key.as_float());
      default:
        type_error("keys must be str, int, float, bool or None, not {}", type_name(key));
    }
  }

  void dict(std::vector<std::pair<Value, Value>> items) {
    if (items.empty()) {
      out += "{}";
      return;
    }
    if (style_.sort_keys) {
      Values keys;
      for (const auto& item : items) keys.push_back(item.first);
      std::vector<std::pair<Value, Value>> sorted;
      for (const size_t i : sorted_order(keys, false)) sorted.push_back(items[i]);
      items = std::move(sorted);
    }
    out += "{";
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += item_separator_;
      new_line();
      out += json_text(key_text(items[i].first), style_.ensure_ascii) + key_separator_;
      write(items[i].second);
    }
    --level_;
    new_line();
    out += "}";
  }

  const JsonStyle& style_;
  std::string item_separator_, key_separator_;
  int level_ = 0;
};

Value json_string(const std::string& s) {
  if (!text::valid(s, false)) throw DataError("a text given to the chat template is not UTF-8");
  return Value::text(s);
}

// Builds values from nlohmann's events, which name numbers as they are written.
class ValueReader : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  Value result;
  std::string error;

  bool null() override { return add(Value::none()); }
  bool boolean(bool v) override { return add(Value::boolean(v)); }
  bool number_integer(number_integer_t v) override { return add(Value::integer(v)); }
  bool number_unsigned(number_unsigned_t v) override { return add(json_unsigned(v)); }
  bool number_float(number_float_t v, const string_t& written) override {
    if (written.find_first_of(".eE") != std::string::npos) return add(Value::number(v));
    const bool negative = written[0] == '-';
    const BigInt magnitude = *BigInt::parse(std::string_view(written).substr(negative ? 1 : 0));
    return add(Value::integer(negative ? -magnitude : magnitude));
  }
  bool string(string_t& v) override { return add(json_string(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(true); }
  bool key(string_t& v) override {
    open_.back().keys.push_back(json_string(v));
    return true;
  }
  bool end_object() override {
    std::vector<std::pair<Value, Value>> items;
    for (size_t i = 0; i < open_.back().values.size(); ++i)
      items.emplace_back(std::move(open_.back().keys[i]), std::move(open_.back().values[i]));
    open_.pop_back();
    return add(Value::dict(std::move(items)));
  }
  bool start_array(size_t) override { return open(false); }
  bool end_array() override {
    Values items = std::move(open_.back().values);
    open_.pop_back();
    return add(Value::list(std::move(items)));
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& e) override {
    error = e.what();
    return false;
  }

  static Value json_unsigned(uint64_t v) {
    if (v <= INT64_MAX) return Value::integer(static_cast<int64_t>(v));
    return Value::integer(*BigInt::parse(std::to_string(v)));
  }

 private:
  struct Open {
    Values keys, values;
  };
  bool open(bool) {
    open_.emplace_back();
    if (open_.size() <= 200) return true;
    error = "nested more than 200 deep";
    return false;
  }
  bool add(Value v) {
    if (open_.empty())
      result = std::move(v);
    else
      open_.back().values.push_back(std::move(v));
    return true;
  }

  std::vector<Open> open_;
};

Value from_json(const nlohmann::ordered_json& j, int depth) {
  if (depth > 200) throw DataError("a value given to the chat template is nested more than 200 deep");
  switch (j.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return Value::boolean(j.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer:
      return Value::integer(j.get<int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned:
      return ValueReader::json_unsigned(j.get<uint64_t>());
    case nlohmann::ordered_json::value_t::number_float:
      return Value::number(j.get<double>());
    case nlohmann::ordered_json::value_t::string:
      return json_string(j.get_ref<const std::string&>());
    case nlohmann::ordered_json::value_t::array: {
      Values items;
      for (const auto& item : j) items.push_back(from_json(item, depth + 1));
      return Value::list(std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      std::vector<std::pair<Value, Value>> items;
      for (const auto& [key, value] : j.items()) items.emplace_back(json_string(key), from_json(value, depth + 1));
      return Value::dict(std::move(items));
    }
    default:
      return Value::none();
  }
}

}  // namespace

std::string to_json(const Value& v, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(v);
  check_text_size(writer.out.size());
  return std::move(writer.out);
}

Value parse_json_value(std::string_view json, const std::string& where) {
  ValueReader reader;
  if (!nlohmann::ordered_json::sax_parse(json, &reader)) throw DataError("{}: {}", where, reader.error);
  return std::move(reader.result);
}

Value json_value(const nlohmann::ordered_json& j) { return from_json(j, 0); }

}  // namespace hierarchos::jinja
