// Attributes of a node: a small sorted list of named values. They are part of a function's structural hash, so whatever
// changes what a node computes is here or in its operands' types, never elsewhere.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hierarchos {

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string_view, Attr>> entries);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // The typed getters throw UserError naming the attribute when it is absent or of another type.
  int64_t i(std::string_view name) const;
  double f(std::string_view name) const;
  const std::string& s(std::string_view name) const;
  const std::vector<int64_t>& ints(std::string_view name) const;
  const std::vector<double>& floats(std::string_view name) const;
  int64_t i_or(std::string_view name, int64_t fallback) const { return has(name) ? i(name) : fallback; }
  double f_or(std::string_view name, double fallback) const { return has(name) ? f(name) : fallback; }

  Attrs& set(std::string_view name, Attr value);
  Attrs& erase(std::string_view name);

  const std::vector<std::pair<std::string, Attr>>& entries() const { return entries_; }
  uint64_t hash() const;
  std::string to_string() const;  // "eps=1e-05 axis=1"
  friend bool operator==(const Attrs& a, const Attrs& b) { return a.entries_ == b.entries_; }

 private:
  const Attr* find(std::string_view name) const;
  std::vector<std::pair<std::string, Attr>> entries_;  // sorted by name
};

}  // namespace hierarchos
