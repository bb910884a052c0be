// Strided operands of CPU kernels: axes merged where memory allows it, and copies of them into rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace hierarchos::cpu {

// Several operands over one common shape. Axes of extent 1 are dropped, and neighbours are merged where every operand
// allows it. Strides are in elements; 0 where an operand is broadcast.
struct Loops {
  std::vector<int64_t> dims;                  // at least one axis
  std::vector<std::vector<int64_t>> strides;  // an operand each

  // Operands are aligned at their last axes, by numpy's rules of broadcasting.
  static Loops over(const Shape& shape, std::span<const TensorDesc> operands);
  int64_t elements() const;
  bool contiguous(size_t operand) const;  // element e of the loops is at address e
  bool uniform(size_t operand) const;     // one element for all
};

// Walks elements [begin, begin + count) of the loops in row-major order, run by run along the last axis:
// body(first, n, offset): n elements from place `first` (0 is `begin`), at `offset` + k · stride of the last axis.
template <typename Body>
void for_runs(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, int64_t begin, int64_t count,
              const Body& body) {
  const size_t last = dims.size() - 1;
  std::array<int64_t, Shape::kMaxRank> index;
  int64_t rest = begin, offset = 0;
  for (size_t a = dims.size(); a-- > 0;) {
    index[a] = rest % dims[a];
    rest /= dims[a];
    offset += index[a] * strides[a];
  }
  for (int64_t done = 0; done < count;) {
    const int64_t left = dims[last] - index[last], n = left < count - done ? left : count - done;
    body(done, n, offset);
    done += n;
    // To the start of the next run.
    offset -= index[last] * strides[last];
    index[last] = 0;
    for (size_t a = last; a-- > 0;) {
      offset += strides[a];
      if (++index[a] < dims[a]) break;
      offset -= dims[a] * strides[a];
      index[a] = 0;
    }
  }
}

// Copies elements [begin, begin + count) of one operand to `to`. `size`: bytes an element (1, 2, 4 or 8).
void copy_elements(const std::byte* from, size_t size, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                   int64_t begin, int64_t count, std::byte* to);

// All elements of one operand, where the last axis is not the one that is contiguous in memory: blocks that stay in the
// cache are read along one axis and written along the other.
class BlockedCopy {
 public:
  // Empty optional: there is nothing to gain.
  static std::optional<BlockedCopy> make(const Loops& loops, size_t operand);
  int64_t blocks() const { return outer_ * row_blocks_ * column_blocks_; }
  void copy(const std::byte* from, size_t size, int64_t block, std::byte* to) const;

 private:
  template <typename T>
  void copy_typed(const std::byte* from, int64_t block, std::byte* to) const;

  std::vector<int64_t> dims_, strides_, to_strides_;  // of the other axes
  int64_t outer_ = 1;
  int64_t rows_ = 0, row_to_ = 0;                     // the axis that is contiguous in memory, its stride in the result
  int64_t columns_ = 0, column_from_ = 0;             // the last axis, its stride in memory
  int64_t row_blocks_ = 0, column_blocks_ = 0;
};

}  // namespace hierarchos::cpu
