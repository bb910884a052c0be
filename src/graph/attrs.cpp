#include "graph/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/hash.h"

namespace hierarchos {

Attrs::Attrs(std::initializer_list<std::pair<std::string_view, Attr>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

const Attr* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

namespace {

template <typename T>
const T& get(const Attr* attr, std::string_view name) {
  if (!attr) throw UserError("attribute {} is missing", name);
  const T* value = std::get_if<T>(attr);
  if (!value) throw UserError("attribute {} has another type", name);
  return *value;
}

}  // namespace

int64_t Attrs::i(std::string_view name) const { return get<int64_t>(find(name), name); }

double Attrs::f(std::string_view name) const {
  const Attr* attr = find(name);
  if (attr && std::holds_alternative<int64_t>(*attr)) return static_cast<double>(std::get<int64_t>(*attr));
  return get<double>(attr, name);
}

const std::string& Attrs::s(std::string_view name) const { return get<std::string>(find(name), name); }
const std::vector<int64_t>& Attrs::ints(std::string_view name) const {
  return get<std::vector<int64_t>>(find(name), name);
}
const std::vector<double>& Attrs::floats(std::string_view name) const {
  return get<std::vector<double>>(find(name), name);
}

Attrs& Attrs::set(std::string_view name, Attr value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const auto& entry, std::string_view key) { return entry.first < key; });
  if (at != entries_.end() && at->first == name)
    at->second = std::move(value);
  else
    entries_.insert(at, {std::string(name), std::move(value)});
  return *this;
}

Attrs& Attrs::erase(std::string_view name) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first == name; });
  return *this;
}

uint64_t Attrs::hash() const {
  Hasher h;
  for (const auto& [name, value] : entries_) {
    h.add(std::string_view(name));
    h.add(static_cast<uint64_t>(value.index()));
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
            h.add(v);
          } else if constexpr (std::is_same_v<T, std::string>) {
            h.add(std::string_view(v));
          } else {
            h.add(static_cast<uint64_t>(v.size()));
            for (const auto& x : v) h.add(x);
          }
        },
        value);
  }
  return h.value();
}

std::string Attrs::to_string() const {
  std::string out;
  for (const auto& [name, value] : entries_) {
    if (!out.empty()) out += ' ';
    out += name + '=';
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>>)
            out += fmt::format("[{}]", fmt::join(v, ","));
          else
            out += fmt::format("{}", v);
        },
        value);
  }
  return out;
}

}  // namespace hierarchos
