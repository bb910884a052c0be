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

}  // namespace hierarchos::cpu
