#include "template/numbers.h"

#include <cmath>
#include <limits>
#include <string>

#include "template/meter.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

// Without the underscores, each of which must stand between two characters that `good` accepts.
template <typename Good>
std::optional<std::string> without_underscores(std::string_view s, Good good) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') {
      out += s[i];
      continue;
    }
    if (i == 0 || i + 1 == s.size() || !good(s[i - 1]) || !good(s[i + 1])) return std::nullopt;
  }
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_decimal_float(std::string_view s) {
  size_t at = 0, digits = 0;
  for (; at < s.size() && is_digit(s[at]); ++at) ++digits;
  if (at < s.size() && s[at] == '.')
    for (++at; at < s.size() && is_digit(s[at]); ++at) ++digits;
  if (digits == 0) return false;
  if (at == s.size()) return true;
  if (s[at] != 'e' && s[at] != 'E') return false;
  ++at;
  if (at < s.size() && (s[at] == '+' || s[at] == '-')) ++at;
  return at < s.size() && s.find_first_not_of("0123456789", at) == std::string_view::npos;
}

bool take_sign(std::string_view& s) {
  const bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.remove_prefix(1);
  return negative;
}

}  // namespace

std::optional<BigInt> parse_integer(std::string_view s, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  s = text::strip(s, true, true);
  const bool negative = take_sign(s);
  const char letter = s.size() > 2 && s[0] == '0' ? static_cast<char>(s[1] | 0x20) : '\0';
  const int64_t named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (named != 0 && (base == 0 || base == named)) {
    base = named;
    s.remove_prefix(2);
    if (s[0] == '_') s.remove_prefix(1);
  } else if (base == 0) {
    if (s.size() > 1 && s[0] == '0' && s.find_first_not_of("0_") != std::string_view::npos) return std::nullopt;
    base = 10;
  }
  const auto digits = without_underscores(s, [](char c) { return c != '_'; });
  if (!digits || digits->size() > 4300) return std::nullopt;
  charge(digits->size() * digits->size() / 8);
  auto out = BigInt::parse(*digits, static_cast<int>(base));
  if (out && negative) out = -*out;
  return out;
}

std::optional<double> parse_float(std::string_view s) {
  s = text::strip(s, true, true);
  const bool negative = take_sign(s);
  const std::string lower = text::lower(s);
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const auto plain = without_underscores(s, is_digit);
    if (!plain || !is_decimal_float(*plain)) return std::nullopt;
    value = std::strtod(plain->c_str(), nullptr);
  }
  return negative ? -value : value;
}

}  // namespace hierarchos::jinja
