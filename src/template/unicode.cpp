#include "template/unicode.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace hierarchos::jinja::unicode {
namespace {

// The flags of all characters from `begin` to the next run.
struct FlagRun {
  char32_t begin;
  uint32_t flags;
};
// Characters begin, begin + stride … last, each of which maps to itself plus delta.
struct MapRun {
  char32_t begin, last;
  uint32_t stride;
  int32_t delta;
};
// A character that becomes several; unused places are 0.
struct Special {
  char32_t from;
  char32_t to[3];
};

#include "template/unicode_tables.inc"

std::u32string map(char32_t c, std::span<const MapRun> runs, std::span<const Special> specials) {
  const auto special =
      std::lower_bound(specials.begin(), specials.end(), c, [](const Special& s, char32_t x) { return s.from < x; });
  if (special != specials.end() && special->from == c) {
    std::u32string out;
    for (const char32_t x : special->to)
      if (x != 0) out += x;
    return out;
  }
  const auto next =
      std::upper_bound(runs.begin(), runs.end(), c, [](char32_t x, const MapRun& r) { return x < r.begin; });
  if (next != runs.begin()) {
    const MapRun& run = *(next - 1);
    if (c <= run.last && (c - run.begin) % run.stride == 0)
      return {static_cast<char32_t>(static_cast<int32_t>(c) + run.delta)};
  }
  return {c};
}

}  // namespace

uint32_t flags(char32_t c) {
  if (c >= 0xD800 && c < 0xE000) return 0;
  const auto* run = std::upper_bound(std::begin(kFlagRuns), std::end(kFlagRuns), c,
                                     [](char32_t x, const FlagRun& r) { return x < r.begin; });
  return run == std::begin(kFlagRuns) ? 0 : (run - 1)->flags;
}

std::u32string upper(char32_t c) { return map(c, kUpperRuns, kUpperSpecials); }
std::u32string lower(char32_t c) { return map(c, kLowerRuns, kLowerSpecials); }
std::u32string title(char32_t c) { return map(c, kTitleRuns, kTitleSpecials); }
std::u32string fold(char32_t c) { return map(c, kFoldRuns, kFoldSpecials); }

}  // namespace hierarchos::jinja::unicode
