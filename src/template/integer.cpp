#include "template/integer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace hierarchos::jinja {
namespace {

constexpr uint32_t kBase = 1'000'000'000;

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

}  // namespace

BigInt::BigInt(int64_t value) : negative_(value < 0) {
  uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  for (; magnitude != 0; magnitude /= kBase) limbs_.push_back(static_cast<uint32_t>(magnitude % kBase));
}

std::optional<BigInt> BigInt::parse(std::string_view digits, int base) {
  if (digits.empty()) return std::nullopt;
  BigInt out;
  uint32_t chunk = 0, scale = 1;
  for (const char c : digits) {
    const int d = digit_value(c);
    if (d >= base) return std::nullopt;
    chunk = chunk * static_cast<uint32_t>(base) + static_cast<uint32_t>(d);
    scale *= static_cast<uint32_t>(base);
    if (scale <= std::numeric_limits<uint32_t>::max() / 36) continue;
    out.multiply_add(scale, chunk);
    chunk = 0;
    scale = 1;
  }
  if (scale > 1) out.multiply_add(scale, chunk);
  return out;
}

BigInt BigInt::truncate(double value) {
  const std::string digits = fmt::format("{:.0f}", std::trunc(std::fabs(value)));
  BigInt out = *parse(digits);
  out.negative_ = value < 0 && !out.zero();
  return out;
}

std::optional<int64_t> BigInt::small() const {
  uint64_t magnitude = 0;
  for (auto limb = limbs_.rbegin(); limb != limbs_.rend(); ++limb) {
    if (magnitude > (std::numeric_limits<uint64_t>::max() - *limb) / kBase) return std::nullopt;
    magnitude = magnitude * kBase + *limb;
  }
  constexpr uint64_t top = uint64_t{1} << 63;
  if (magnitude > (negative_ ? top : top - 1)) return std::nullopt;
  return static_cast<int64_t>(negative_ ? 0 - magnitude : magnitude);
}

double BigInt::to_double() const { return std::strtod(text().c_str(), nullptr); }

std::string BigInt::text(int base) const {
  if (zero()) return "0";
  std::string out;
  if (base == 10) {
    out = std::to_string(limbs_.back());
    for (size_t i = limbs_.size() - 1; i-- > 0;) out += fmt::format("{:09}", limbs_[i]);
  } else {
    for (BigInt rest = *this; !rest.zero();)
      out += "0123456789abcdefghijklmnopqrstuvwxyz"[rest.divide_small(static_cast<uint32_t>(base))];
    std::reverse(out.begin(), out.end());
  }
  return negative_ ? "-" + out : out;
}

size_t BigInt::digits() const { return zero() ? 1 : (limbs_.size() - 1) * 9 + std::to_string(limbs_.back()).size(); }

BigInt BigInt::operator-() const {
  BigInt out = *this;
  out.negative_ = !negative_ && !zero();
  return out;
}

BigInt operator+(const BigInt& a, const BigInt& b) {
  BigInt out;
  if (a.negative_ == b.negative_) {
    out = BigInt::add_magnitude(a, b);
    out.negative_ = a.negative_;
  } else if (BigInt::compare_magnitude(a, b) >= 0) {
    out = BigInt::subtract_magnitude(a, b);
    out.negative_ = a.negative_;
  } else {
    out = BigInt::subtract_magnitude(b, a);
    out.negative_ = b.negative_;
  }
  if (out.zero()) out.negative_ = false;
  return out;
}

BigInt operator*(const BigInt& a, const BigInt& b) {
  BigInt out;
  out.limbs_.assign(a.limbs_.size() + b.limbs_.size(), 0);
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs_.size() || carry != 0; ++j) {
      const uint64_t product =
          out.limbs_[i + j] + carry + (j < b.limbs_.size() ? uint64_t{a.limbs_[i]} * b.limbs_[j] : 0);
      out.limbs_[i + j] = static_cast<uint32_t>(product % kBase);
      carry = product / kBase;
    }
  }
  out.trim();
  out.negative_ = a.negative_ != b.negative_ && !out.zero();
  return out;
}

BigInt::Division BigInt::divide(const BigInt& a, const BigInt& b) {
  BigInt divisor = b;
  divisor.negative_ = false;
  BigInt quotient, remainder;
  quotient.limbs_.assign(a.limbs_.size(), 0);
  // Schoolbook, a digit of base 10^9 at a time. Each is estimated from the leading digits, a little low, and counted
  // up.
  for (size_t i = a.limbs_.size(); i-- > 0;) {
    remainder.multiply_add(kBase, a.limbs_[i]);
    const size_t shorter = divisor.limbs_.size();
    const double estimate = remainder.leading(shorter) / divisor.leading(shorter);
    auto digit = static_cast<uint32_t>(std::clamp(estimate - 1, 0.0, kBase - 1.0));
    BigInt product = divisor;
    product.multiply_add(digit, 0);
    remainder = subtract_magnitude(remainder, product);
    for (; compare_magnitude(remainder, divisor) >= 0; ++digit) remainder = subtract_magnitude(remainder, divisor);
    quotient.limbs_[i] = digit;
  }
  quotient.trim();
  quotient.negative_ = a.negative_ != b.negative_ && !quotient.zero();
  remainder.negative_ = a.negative_ && !remainder.zero();
  if (!remainder.zero() && a.negative_ != b.negative_) {
    quotient = quotient - BigInt(1);
    remainder = remainder + b;
  }
  return {std::move(quotient), std::move(remainder)};
}

int BigInt::compare(const BigInt& a, const BigInt& b) {
  if (a.negative_ != b.negative_) return a.negative_ ? -1 : 1;
  return a.negative_ ? -compare_magnitude(a, b) : compare_magnitude(a, b);
}

int BigInt::compare_magnitude(const BigInt& a, const BigInt& b) {
  if (a.limbs_.size() != b.limbs_.size()) return a.limbs_.size() < b.limbs_.size() ? -1 : 1;
  for (size_t i = a.limbs_.size(); i-- > 0;)
    if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] < b.limbs_[i] ? -1 : 1;
  return 0;
}

BigInt BigInt::add_magnitude(const BigInt& a, const BigInt& b) {
  BigInt out;
  uint32_t carry = 0;
  for (size_t i = 0; i < std::max(a.limbs_.size(), b.limbs_.size()) || carry != 0; ++i) {
    const uint32_t sum = carry + (i < a.limbs_.size() ? a.limbs_[i] : 0) + (i < b.limbs_.size() ? b.limbs_[i] : 0);
    out.limbs_.push_back(sum % kBase);
    carry = sum / kBase;
  }
  return out;
}

BigInt BigInt::subtract_magnitude(const BigInt& a, const BigInt& b) {
  BigInt out = a;
  out.negative_ = false;
  uint32_t borrow = 0;
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    const uint32_t take = borrow + (i < b.limbs_.size() ? b.limbs_[i] : 0);
    borrow = out.limbs_[i] < take;
    out.limbs_[i] = out.limbs_[i] + (borrow != 0 ? kBase : 0) - take;
  }
  out.trim();
  return out;
}

double BigInt::leading(size_t from) const {
  double value = 0;
  for (size_t i = limbs_.size(); i-- > 0 && i + 4 >= from;)
    value +=
        static_cast<double>(limbs_[i]) * std::pow(double{kBase}, static_cast<double>(i) - static_cast<double>(from));
  return value;
}

void BigInt::multiply_add(uint32_t factor, uint32_t term) {
  uint64_t carry = term;
  for (uint32_t& limb : limbs_) {
    const uint64_t product = uint64_t{limb} * factor + carry;
    limb = static_cast<uint32_t>(product % kBase);
    carry = product / kBase;
  }
  if (carry != 0) limbs_.push_back(static_cast<uint32_t>(carry));
  trim();
}

uint32_t BigInt::divide_small(uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = limbs_.size(); i-- > 0;) {
    rest = rest * kBase + limbs_[i];
    limbs_[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  trim();
  return static_cast<uint32_t>(rest);
}

void BigInt::trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

}  // namespace hierarchos::jinja
