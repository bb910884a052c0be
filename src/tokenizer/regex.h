// Oniguruma, as the reference tokenizer uses it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hierarchos {

// A part of a text in bytes, and whether the pattern matched it. Parts cover the text; a match may be empty.
struct Match {
  size_t begin = 0, end = 0;
  bool matched = false;
};

class Regex {
 public:
  // UnsupportedError with Oniguruma's reason; `where` names the pattern's place.
  Regex(const std::string& pattern, const std::string& where);
  ~Regex();
  Regex(Regex&&) noexcept;

  // All matches from left to right and what lies between. An empty text is one part that does not match. The text is
  // valid UTF-8. DataError where Oniguruma gives up (its limit of retries).
  void find_all(std::string_view text, std::vector<Match>& out) const;
  // Finds plain text; never an error.
  static void find_all_literal(std::string_view text, std::string_view literal, std::vector<Match>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hierarchos
