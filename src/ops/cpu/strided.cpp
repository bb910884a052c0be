#include "ops/cpu/strided.h"

#include <algorithm>
#include <cstring>

namespace hierarchos::cpu {

Loops Loops::over(const Shape& shape, std::span<const TensorDesc> operands) {
  Loops out;
  out.strides.resize(operands.size());
  std::vector<int64_t> own(operands.size());
  for (int a = 0; a < shape.rank(); ++a) {
    if (shape[a] == 1) continue;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int at = a - (shape.rank() - operands[i].shape.rank());
      own[i] = at < 0 || operands[i].shape[at] == 1 ? 0 : operands[i].strides[static_cast<size_t>(at)];
    }
    bool merge = !out.dims.empty();
    for (size_t i = 0; merge && i < operands.size(); ++i) merge = out.strides[i].back() == own[i] * shape[a];
    if (merge) {
      out.dims.back() *= shape[a];
      for (size_t i = 0; i < operands.size(); ++i) out.strides[i].back() = own[i];
    } else {
      out.dims.push_back(shape[a]);
      for (size_t i = 0; i < operands.size(); ++i) out.strides[i].push_back(own[i]);
    }
  }
  if (out.dims.empty()) {
    out.dims.push_back(1);
    for (auto& s : out.strides) s.push_back(1);
  }
  return out;
}

int64_t Loops::elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

bool Loops::contiguous(size_t operand) const {
  int64_t expected = 1;
  for (size_t a = dims.size(); a-- > 0;) {
    if (strides[operand][a] != expected) return false;
    expected *= dims[a];
  }
  return true;
}

bool Loops::uniform(size_t operand) const {
  return std::all_of(strides[operand].begin(), strides[operand].end(), [](int64_t s) { return s == 0; }) || elements() == 1;
}

namespace {

template <typename T>
void copy_typed(const std::byte* from, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, int64_t begin,
                int64_t count, std::byte* to) {
  const auto* in = reinterpret_cast<const T*>(from);
  auto* out = reinterpret_cast<T*>(to);
  const int64_t stride = strides.back();
  for_runs(dims, strides, begin, count, [&](int64_t first, int64_t n, int64_t offset) {
    const T* p = in + offset;
    T* q = out + first;
    if (stride == 1 && n >= 16)
      std::memcpy(q, p, static_cast<size_t>(n) * sizeof(T));
    else if (stride == 0)
      std::fill_n(q, n, *p);
    else
      for (int64_t k = 0; k < n; ++k) q[k] = p[k * stride];
  });
}

}  // namespace

void copy_elements(const std::byte* from, size_t size, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                   int64_t begin, int64_t count, std::byte* to) {
  switch (size) {
    case 1: return copy_typed<uint8_t>(from, dims, strides, begin, count, to);
    case 2: return copy_typed<uint16_t>(from, dims, strides, begin, count, to);
    case 4: return copy_typed<uint32_t>(from, dims, strides, begin, count, to);
    default: return copy_typed<uint64_t>(from, dims, strides, begin, count, to);
  }
}

namespace {
constexpr int64_t kBlock = 32;  // elements a side
}

std::optional<BlockedCopy> BlockedCopy::make(const Loops& loops, size_t operand) {
  const auto& strides = loops.strides[operand];
  const size_t last = loops.dims.size() - 1;
  if (strides[last] <= 1 || loops.dims[last] < kBlock / 2) return std::nullopt;
  size_t unit = loops.dims.size();
  for (size_t a = 0; a < last; ++a)
    if (strides[a] == 1 && loops.dims[a] >= kBlock / 2) unit = a;
  if (unit == loops.dims.size()) return std::nullopt;
  BlockedCopy c;
  int64_t to = 1;
  for (size_t a = loops.dims.size(); a-- > 0;) {
    if (a == unit) {
      c.rows_ = loops.dims[a];
      c.row_to_ = to;
    } else if (a == last) {
      c.columns_ = loops.dims[a];
      c.column_from_ = strides[a];
    } else {
      c.dims_.push_back(loops.dims[a]);
      c.strides_.push_back(strides[a]);
      c.to_strides_.push_back(to);
      c.outer_ *= loops.dims[a];
    }
    to *= loops.dims[a];
  }
  c.row_blocks_ = (c.rows_ + kBlock - 1) / kBlock;
  c.column_blocks_ = (c.columns_ + kBlock - 1) / kBlock;
  return c;
}

template <typename T>
void BlockedCopy::copy_typed(const std::byte* from, int64_t block, std::byte* to) const {
  const auto* in = reinterpret_cast<const T*>(from);
  auto* out = reinterpret_cast<T*>(to);
  const int64_t column = block % column_blocks_ * kBlock, row = block / column_blocks_ % row_blocks_ * kBlock;
  int64_t rest = block / column_blocks_ / row_blocks_;
  for (size_t a = 0; a < dims_.size(); ++a) {
    in += rest % dims_[a] * strides_[a];
    out += rest % dims_[a] * to_strides_[a];
    rest /= dims_[a];
  }
  in += row + column * column_from_;
  out += row * row_to_ + column;
  const int64_t rows = std::min(kBlock, rows_ - row), columns = std::min(kBlock, columns_ - column);
  // Lines far apart are beyond the hardware's prefetching: the block's own come in together, not one by one.
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; r += kLine) __builtin_prefetch(in + r + c * column_from_);
  T tile[kBlock][kBlock];
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) tile[r][c] = in[r + c * column_from_];
  for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * row_to_, tile[r], static_cast<size_t>(columns) * sizeof(T));
}

void BlockedCopy::copy(const std::byte* from, size_t size, int64_t block, std::byte* to) const {
  switch (size) {
    case 1: return copy_typed<uint8_t>(from, block, to);
    case 2: return copy_typed<uint16_t>(from, block, to);
    case 4: return copy_typed<uint32_t>(from, block, to);
    default: return copy_typed<uint64_t>(from, block, to);
  }
}

}  // namespace hierarchos::cpu
