// Reading of tokenizer files: names what is missing or of another kind. simdjson, since vocabularies are large.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hierarchos::tokenizers {

using Json = simdjson::dom::element;

// What an error names: the file, and the place in it ("tokenizer.json: the normalizer"). Nesting is counted, so that a
// hostile file cannot exhaust the stack.
struct Place {
  std::string name;
  int depth = 0;
  Place inside(std::string_view what) const {
    constexpr int kDeepest = 64;
    if (depth >= kDeepest) throw DataError("{}: components are nested deeper than {}", name, kDeepest);
    return {name + ": " + std::string(what), depth + 1};
  }
};

// An object. Where a key is repeated, the last counts, as for the reference.
class Object {
 public:
  Object(Json value, Place place) : place_(std::move(place)) {
    if (value.get_object().get(object_) != simdjson::SUCCESS) throw DataError("{} is no object", place_.name);
  }
  const Place& place() const { return place_; }
  Place inside(std::string_view key) const { return place_.inside(key); }

  std::optional<Json> find(std::string_view key) const {
    std::optional<Json> found;
    for (const auto field : object_)
      if (field.key == key) found = field.value;
    return found;
  }
  Json at(std::string_view key) const {
    const auto found = find(key);
    if (!found) throw DataError("{} has no \"{}\"", place_.name, key);
    return *found;
  }
  bool has(std::string_view key) const {
    const auto found = find(key);
    return found && !found->is_null();
  }
  bool flag(std::string_view key) const { return get<bool>(key, "neither true nor false"); }
  bool flag(std::string_view key, bool fallback) const { return has(key) ? flag(key) : fallback; }
  std::string text(std::string_view key) const { return std::string(get<std::string_view>(key, "no text")); }
  uint64_t size(std::string_view key) const { return get<uint64_t>(key, "no count"); }
  // An id of a token.
  int32_t id(std::string_view key) const;
  double number(std::string_view key) const { return get<double>(key, "no number"); }
  simdjson::dom::array array(std::string_view key) const { return get<simdjson::dom::array>(key, "no array"); }
  // One character.
  char32_t character(std::string_view key) const;
  const simdjson::dom::object& fields() const { return object_; }

 private:
  template <typename T>
  T get(std::string_view key, const char* complaint) const {
    T value;
    if (at(key).get<T>().get(value) != simdjson::SUCCESS)
      throw DataError("{}: \"{}\" is {}", place_.name, key, complaint);
    return value;
  }
  simdjson::dom::object object_;
  Place place_;
};

int32_t to_id(Json value, const Place& place, std::string_view what);

}  // namespace hierarchos::tokenizers
