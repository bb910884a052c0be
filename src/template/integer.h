// Integers of any size, as Python has them, up to the 4300 decimal digits that Python is willing to print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hierarchos::jinja {

class BigInt {
 public:
  BigInt() = default;
  BigInt(int64_t value);  // NOLINT(google-explicit-constructor): a small integer is one
  // Digits of base 2 to 36, without sign, prefix or underscores; nullopt when a character is none.
  static std::optional<BigInt> parse(std::string_view digits, int base = 10);
  // Towards zero. The value must be finite.
  static BigInt truncate(double value);

  bool negative() const { return negative_; }
  bool zero() const { return limbs_.empty(); }
  bool odd() const { return !limbs_.empty() && limbs_[0] % 2 == 1; }
  std::optional<int64_t> small() const;  // nullopt beyond 64 bits
  double to_double() const;              // the nearest; infinite beyond the range
  std::string text(int base = 10) const;
  size_t digits() const;  // decimal, of the magnitude

  BigInt operator-() const;
  friend BigInt operator+(const BigInt& a, const BigInt& b);
  friend BigInt operator-(const BigInt& a, const BigInt& b) { return a + -b; }
  friend BigInt operator*(const BigInt& a, const BigInt& b);
  // Python's: the quotient is rounded down, the remainder has the divisor's sign. The divisor is not zero.
  struct Division;
  static Division divide(const BigInt& a, const BigInt& b);
  static int compare(const BigInt& a, const BigInt& b);  // < 0, 0, > 0

 private:
  static int compare_magnitude(const BigInt& a, const BigInt& b);
  static BigInt add_magnitude(const BigInt& a, const BigInt& b);
  static BigInt subtract_magnitude(const BigInt& a, const BigInt& b);  // |a| >= |b|
  double leading(size_t from) const;  // of the magnitude, in units of 10^9 to the power `from`, nearly
  void multiply_add(uint32_t factor, uint32_t term);
  uint32_t divide_small(uint32_t divisor);  // in place, of the magnitude; returns the remainder
  void trim();

  bool negative_ = false;
  std::vector<uint32_t> limbs_;  // base 10^9, least first, no zeros at the end
};

struct BigInt::Division {
  BigInt quotient, remainder;
};

}  // namespace hierarchos::jinja
