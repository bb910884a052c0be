// Reads config.json and keeps account: a key that was neither used nor declared harmless could change the numbers, and
// is an error. So nothing that a package says is silently ignored.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace hierarchos::models {

class ConfigReader {
 public:
  // `where` names the file in errors. `prefix` is put before keys in errors ("rope_scaling.").
  explicit ConfigReader(const nlohmann::json& config, std::string where = "config.json", std::string prefix = {});

  // Getters mark the key used. A key that is absent or null gives the fallback. The first form of each takes
  // several spellings, the first present one counts. A value of another kind is a DataError naming the key.
  using Keys = std::initializer_list<std::string_view>;
  std::optional<int64_t> integer(Keys keys);
  std::optional<double> number(Keys keys);
  std::optional<bool> flag(Keys keys);
  std::optional<std::string> text(Keys keys);
  std::optional<std::vector<double>> numbers(Keys keys);
  int64_t integer(std::string_view key, int64_t fallback) { return integer({key}).value_or(fallback); }
  double number(std::string_view key, double fallback) { return number({key}).value_or(fallback); }
  bool flag(std::string_view key, bool fallback) { return flag({key}).value_or(fallback); }
  std::string text(std::string_view key, std::string fallback) { return text({key}).value_or(std::move(fallback)); }
  // For keys of which null says something else than absence (no window, no cap): absent gives the fallback, null
  // nothing.
  std::optional<int64_t> integer_or_null(std::string_view key, int64_t fallback);
  std::optional<double> number_or_null(std::string_view key, double fallback);
  // An integer from 1 to `most`: sizes and counts.
  int64_t size(Keys keys, std::optional<int64_t> fallback = std::nullopt,
               int64_t most = std::numeric_limits<int32_t>::max());
  // The value itself; null when absent. Marks it used.
  const nlohmann::json* find(std::string_view key);
  bool has(std::string_view key) const;  // present and not null; does not mark

  // Only this value is honoured: absent, null or `value`; otherwise UnsupportedError saying `advice`.
  void only(std::string_view key, const nlohmann::json& value, std::string_view advice);
  // Keys that do not change what a forward pass computes. "*" at either end matches anything there.
  void harmless(std::initializer_list<std::string_view> patterns);
  // The keys of every config.json that say nothing about numbers: versions, generation settings, dropouts, labels …
  void harmless_everywhere();

  // Throws UnsupportedError naming the first key that is unaccounted for and not null.
  void finish() const;

  [[noreturn]] void fail(std::string_view key, const std::string& what) const;         // DataError
  [[noreturn]] void unsupported(std::string_view key, const std::string& what) const;  // UnsupportedError
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json* first(Keys keys, std::string_view* which);
  const nlohmann::json& config_;
  std::string where_, prefix_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace hierarchos::models
