#include "tensor/shape.h"

#include <algorithm>

#include "base/error.h"

namespace hierarchos {

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (dims.size() > kMaxRank) throw UserError("a tensor has at most {} axes, this has {}", kMaxRank, dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  int64_t product = 1;  // without extents of 0, so that no product of some of the extents overflows either
  for (int64_t d : dims) {
    if (d < 0) throw UserError("an extent of {} in a shape", d);
    if (__builtin_mul_overflow(product, std::max<int64_t>(d, 1), &product))
      throw UserError("a tensor of shape {} is too large", to_string());
  }
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int a = 0; a < rank_; ++a) n *= dims_[static_cast<size_t>(a)];
  return n;
}

int64_t Shape::rows() const {
  int64_t n = 1;
  for (int a = 0; a + 1 < rank_; ++a) n *= dims_[static_cast<size_t>(a)];
  return n;
}

std::vector<int64_t> Shape::contiguous_strides() const {
  std::vector<int64_t> strides(static_cast<size_t>(rank_));
  int64_t n = 1;
  for (size_t a = strides.size(); a-- > 0;) {
    strides[a] = n;
    n *= std::max<int64_t>(dims_[a], 1);
  }
  return strides;
}

std::string Shape::to_string() const {
  std::string out = "[";
  for (int a = 0; a < rank_; ++a) out += (a ? ", " : "") + std::to_string(dims_[static_cast<size_t>(a)]);
  return out + "]";
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

}  // namespace hierarchos
