#include "tokenizer/json.h"

#include "tokenizer/unicode.h"

namespace hierarchos::tokenizers {

int32_t to_id(Json value, const Place& place, std::string_view what) {
  uint64_t id = 0;
  if (value.get_uint64().get(id) != simdjson::SUCCESS || id > std::numeric_limits<int32_t>::max())
    throw DataError("{}: the id of {} is no integer from 0 to 2147483647", place.name, what);
  return static_cast<int32_t>(id);
}

int32_t Object::id(std::string_view key) const { return to_id(at(key), place_, key); }

char32_t Object::character(std::string_view key) const {
  const std::string value = text(key);
  if (unicode::count(value) != 1) throw DataError("{}: \"{}\" is not one character", place_.name, key);
  const char* p = value.data();
  return unicode::next(p);
}

}  // namespace hierarchos::tokenizers
