#include "tokenizer/regex.h"

#include <oniguruma.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace hierarchos {
namespace {

std::string message(int code, OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text{};
  const int length = info ? onig_error_code_to_str(text.data(), code, info) : onig_error_code_to_str(text.data(), code);
  return {reinterpret_cast<const char*>(text.data()), static_cast<size_t>(std::max(length, 0))};
}

struct RegionFree {
  void operator()(OnigRegion* r) const { onig_region_free(r, 1); }
};

// Adds a match and what lies before it, if anything.
void add(std::vector<Match>& out, size_t& done, size_t begin, size_t end) {
  if (begin > done) out.push_back({done, begin, false});
  out.push_back({begin, end, true});
  done = end;
}

}  // namespace

struct Regex::Impl {
  regex_t* regex = nullptr;
  ~Impl() { onig_free(regex); }
};

Regex::Regex(const std::string& pattern, const std::string& where) : impl_(std::make_unique<Impl>()) {
  unicode::in_class('a', "L");  // initializes the library
  const auto* begin = reinterpret_cast<const OnigUChar*>(pattern.data());
  OnigErrorInfo info;
  const int rc = onig_new(&impl_->regex, begin, begin + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                          ONIG_SYNTAX_ONIGURUMA, &info);
  if (rc != ONIG_NORMAL) {
    impl_->regex = nullptr;
    throw UnsupportedError("{}: the pattern {}: {}", where, pattern, message(rc, &info));
  }
}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

void Regex::find_all(std::string_view text, std::vector<Match>& out) const {
  out.clear();
  if (text.empty()) return out.push_back({0, 0, false});
  const std::unique_ptr<OnigRegion, RegionFree> region(onig_region_new());
  const auto* data = reinterpret_cast<const OnigUChar*>(text.data());
  const auto* end_of_text = data + text.size();
  size_t done = 0, from = 0;
  bool any = false;
  while (from <= text.size()) {
    const auto found =
        onig_search(impl_->regex, data, end_of_text, data + from, end_of_text, region.get(), ONIG_OPTION_NONE);
    if (found == ONIG_MISMATCH) break;
    if (found < 0) throw DataError("A text cannot be split into words: {}", message(static_cast<int>(found), nullptr));
    const auto begin = static_cast<size_t>(region->beg[0]), end = static_cast<size_t>(region->end[0]);
    // An empty match right after a match does not count.
    if (begin == end && any && done == end) {
      from = end < text.size() ? end + unicode::length_of(text[end]) : end + 1;
      continue;
    }
    add(out, done, begin, end);
    any = true;
    from = end;
  }
  if (done < text.size()) out.push_back({done, text.size(), false});
}

void Regex::find_all_literal(std::string_view text, std::string_view literal, std::vector<Match>& out) {
  out.clear();
  if (text.empty()) return out.push_back({0, 0, false});
  size_t done = 0;
  for (size_t at = text.find(literal); at != std::string_view::npos; at = text.find(literal, done))
    add(out, done, at, at + literal.size());
  if (done < text.size()) out.push_back({done, text.size(), false});
}

}  // namespace hierarchos
