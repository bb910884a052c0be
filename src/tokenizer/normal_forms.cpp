// Normal forms (Unicode's annex 15) that say where each character came from, as the reference's do: the count of a
// character that is moved by reordering goes with it, and composition adds the counts of what it joins.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tokenizer/unicode.h"

namespace hierarchos::unicode {
namespace {

uint8_t combining_class(char32_t c) {
  if (c < 0x300) return 0;
  return static_cast<uint8_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class);
}

// Of a starter and what follows it, or two starters; exclusions honoured.
std::optional<char32_t> compose_pair(char32_t first, char32_t second) {
  if (second < 0x300) return std::nullopt;
  std::array<utf8proc_int32_t, 3> buffer = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second),
                                            0};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(buffer.data(), 2, options) != 1) return std::nullopt;
  return static_cast<char32_t>(buffer[0]);
}

void decompose(std::string_view text, bool compatible, std::vector<Change>& out) {
  const auto options =
      static_cast<utf8proc_option_t>(compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE);
  std::array<utf8proc_int32_t, 64> parts{};  // the longest decomposition has 18
  size_t ready = out.size();                 // what stands before is in order
  const auto sort_pending = [&] {
    if (out.size() - ready > 1)
      std::stable_sort(
          out.begin() + static_cast<std::ptrdiff_t>(ready), out.end(),
          [](const Change& a, const Change& b) { return combining_class(a.first) < combining_class(b.first); });
    ready = out.size();
  };
  const auto push = [&](char32_t c, bool first) {
    if (combining_class(c) == 0) sort_pending();
    out.emplace_back(c, first ? 0 : 1);
  };
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const char32_t c = next(p);
    if (c < 0xA0) {
      push(c, true);
      continue;
    }
    int boundary = UTF8PROC_BOUNDCLASS_START;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                           static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
    if (n <= 0 || n > static_cast<utf8proc_ssize_t>(parts.size())) {
      push(c, true);
      continue;
    }
    for (utf8proc_ssize_t i = 0; i < n; ++i) push(static_cast<char32_t>(parts[static_cast<size_t>(i)]), i == 0);
  }
  sort_pending();
}

// A character joins the last starter unless one between them has a class of 0 or no smaller than its own.
std::vector<Change> composed(const std::vector<Change>& in) {
  std::vector<Change> out, waiting;
  out.reserve(in.size());
  std::optional<Change> starter;
  int last_class = -1;  // of the characters that wait; -1: there are none
  const auto release = [&](const Change& next_starter) {
    out.push_back(*starter);
    out.insert(out.end(), waiting.begin(), waiting.end());
    waiting.clear();
    starter = next_starter;
    last_class = -1;
  };
  for (const Change& change : in) {
    const uint8_t ccc = combining_class(change.first);
    if (!starter) {
      if (ccc != 0)
        out.push_back(change);
      else
        starter = change;
      continue;
    }
    const bool blocked = last_class >= static_cast<int>(ccc);
    if (!blocked) {
      if (const auto joined = compose_pair(starter->first, change.first)) {
        starter = Change(*joined, starter->second + change.second - 1);
        continue;
      }
    }
    if (ccc == 0) {
      // One that is blocked by nothing but did not compose, after waiting marks, cannot be of class 0.
      release(change);
      continue;
    }
    waiting.push_back(change);
    last_class = ccc;
  }
  if (starter) out.push_back(*starter);
  out.insert(out.end(), waiting.begin(), waiting.end());
  return out;
}

}  // namespace

void normalize(std::string_view text, bool compatible, bool compose, std::vector<Change>& out) {
  out.clear();
  out.reserve(text.size());
  decompose(text, compatible, out);
  if (compose) out = composed(out);
}

}  // namespace hierarchos::unicode
