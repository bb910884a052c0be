// Extents of a tensor, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace hierarchos {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // rank 0: one element
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)]; }
  int64_t elements() const;
  int64_t back() const { return (*this)[-1]; }
  // Product of all extents but the last; 1 for rank 0.
  int64_t rows() const;
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  std::vector<int64_t> to_vector() const { return {dims_.begin(), dims_.begin() + rank_}; }
  // Row-major strides in elements.
  std::vector<int64_t> contiguous_strides() const;
  std::string to_string() const;  // "[2, 24, 96]"

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace hierarchos
