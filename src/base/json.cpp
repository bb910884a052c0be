#include "base/json.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/os/file.h"

namespace hierarchos {
namespace {

constexpr std::string_view kFloatKey = "__float__";
constexpr size_t kMaxDepth = 500;

// The text as the parser reads it: bare NaN, Infinity and -Infinity come as objects {"__float__": "..."}. Outside of
// strings those letters are nothing else in JSON.
class Source {
 public:
  explicit Source(std::string_view text) : text_(text) { look(); }

  bool at_end() const { return pending_.empty() && position_ == text_.size(); }
  char current() const { return pending_.empty() ? text_[position_] : pending_.front(); }
  void advance() {
    ++given_;
    if (!pending_.empty()) {
      pending_.remove_prefix(1);
      if (!pending_.empty()) return;
      position_ += literal_;
    } else {
      const char c = text_[position_++];
      if (in_string_ && c == '\\' && position_ < text_.size() && !escaped_)
        escaped_ = true;
      else if (c == '"' && !escaped_)
        in_string_ = !in_string_;
      else
        escaped_ = false;
    }
    look();
  }
  size_t position() const { return position_; }  // bytes of the text that were taken
  size_t given() const { return given_; }        // characters that the parser got for them

 private:
  void look() {
    if (in_string_ || position_ == text_.size()) return;
    const char c = text_[position_];
    if (c != 'N' && c != 'I' && c != '-') return;
    static constexpr std::pair<std::string_view, std::string_view> kLiterals[] = {
        {"NaN", R"({"__float__":"NaN"})"},
        {"Infinity", R"({"__float__":"Infinity"})"},
        {"-Infinity", R"({"__float__":"-Infinity"})"},
    };
    for (const auto& [literal, object] : kLiterals) {
      if (text_.substr(position_, literal.size()) != literal) continue;
      const std::string_view rest = text_.substr(position_ + literal.size());
      if (!rest.empty() && (std::isalnum(static_cast<unsigned char>(rest[0])) != 0 || rest[0] == '_')) return;
      pending_ = object;
      literal_ = literal.size();
      return;
    }
  }

  std::string_view text_;
  size_t position_ = 0;
  size_t given_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  std::string_view pending_;  // what is left of an object that stands for a literal
  size_t literal_ = 0;        // length of that literal
};

// A default one is the end.
class Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Iterator() = default;
  explicit Iterator(Source* source) : source_(source) {}
  char operator*() const { return source_->current(); }
  Iterator& operator++() {
    source_->advance();
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    source_->advance();
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.ended() == b.ended(); }
  friend bool operator!=(const Iterator& a, const Iterator& b) { return !(a == b); }

 private:
  bool ended() const { return source_ == nullptr || source_->at_end(); }
  Source* source_ = nullptr;
};

// Builds the document from the parser's events.
template <typename Json>
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const Source& source) : source_(source) {}

  using typename nlohmann::json_sax<Json>::number_integer_t;
  using typename nlohmann::json_sax<Json>::number_unsigned_t;
  using typename nlohmann::json_sax<Json>::number_float_t;
  using typename nlohmann::json_sax<Json>::string_t;
  using typename nlohmann::json_sax<Json>::binary_t;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in texts
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& top = levels_.back();
    if (!top.keys.insert(name).second) return fail("key '" + name + "' stands twice in the same object");
    top.key = std::move(name);
    return true;
  }

  bool end_object() override {
    Json& object = levels_.back().value;
    if (object.size() == 1 && object.begin().key() == kFloatKey) {
      const Json& text = object.begin().value();
      const auto name = text.is_string() ? text.template get<std::string>() : std::string();
      double number = 0;
      if (name == "NaN")
        number = std::numeric_limits<double>::quiet_NaN();
      else if (name == "Infinity")
        number = std::numeric_limits<double>::infinity();
      else if (name == "-Infinity")
        number = -std::numeric_limits<double>::infinity();
      else
        return fail(R"(the value of "__float__" must be "NaN", "Infinity" or "-Infinity")");
      object = number;
    }
    return close();
  }

  bool parse_error(size_t read, const std::string&, const nlohmann::json::exception& e) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ...": the place is ours.
    unread_ = source_.given() > read ? source_.given() - read : 0;
    std::string_view text = e.what();
    if (const auto bracket = text.find("] "); bracket != std::string_view::npos) text.remove_prefix(bracket + 2);
    if (text.starts_with("parse error"))
      if (const auto colon = text.find(": "); colon != std::string_view::npos) text.remove_prefix(colon + 2);
    return fail(std::string(text));
  }

  const std::string& error() const { return error_; }
  size_t unread() const { return unread_; }  // characters after the fault that the parser put back
  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json value;
    std::string key;  // under which the next value comes
    std::unordered_set<std::string> keys;
  };

  bool fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }

  bool put(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& top = levels_.back();
    if (top.value.is_array())
      top.value.push_back(std::move(value));
    else if constexpr (std::is_same_v<Json, nlohmann::ordered_json>)
      // Its emplace looks through all keys again, which takes long for large objects; they are known to differ.
      top.value.template get_ref<typename Json::object_t&>().emplace_back(std::move(top.key), std::move(value));
    else
      top.value.emplace(std::move(top.key), std::move(value));
    return true;
  }

  bool open(Json value) {
    if (levels_.size() == kMaxDepth) return fail("nested more than " + std::to_string(kMaxDepth) + " deep");
    levels_.push_back({std::move(value), {}, {}});
    return true;
  }

  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return put(std::move(value));
  }

  const Source& source_;
  size_t unread_ = 0;
  std::vector<Level> levels_;
  Json root_;
  std::string error_;
};

template <typename Json>
Json parse(std::string_view text, const std::string& where) {
  Source source(text);
  Builder<Json> builder(source);
  if (Json::sax_parse(Iterator(&source), Iterator(), &builder)) return builder.take();
  // The fault is the last character that the parser read and kept.
  const size_t end = source.position() - std::min(source.position(), builder.unread() + 1);
  const std::string_view before = text.substr(0, end);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  throw DataError("{}:{}:{}: {}", where, line, end - line_start + 1,
                  builder.error().empty() ? "malformed JSON" : builder.error());
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  return parse<nlohmann::json>(text, where);
}
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where) {
  return parse<nlohmann::ordered_json>(text, where);
}
nlohmann::json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path.string());
}
nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& path) {
  return parse_ordered_json(read_text_file(path), path.string());
}

nlohmann::json json_number(double value) {
  if (std::isfinite(value)) return value;
  const char* const name = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  return {{std::string(kFloatKey), name}};
}

}  // namespace hierarchos
