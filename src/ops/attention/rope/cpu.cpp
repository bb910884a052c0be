#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "ops/attention/rope/rope.h"
#include "ops/matmul/matmul/gemm.h"
#include "ops/operator.h"

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/rope/cpu.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hierarchos::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Rotates the pairs of one head; `direction` is -1 to rotate back.
void Rotate(const float* x, const float* cos, const float* sin, int64_t half, bool interleaved, float direction,
            float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V sign = hn::Set(d, direction);
  int64_t p = 0;
  for (; p + lanes <= half; p += lanes) {
    const V c = hn::LoadU(d, cos + p), s = hn::Mul(sign, hn::LoadU(d, sin + p));
    V a, b;
    if (interleaved) {
      hn::LoadInterleaved2(d, x + 2 * p, a, b);
    } else {
      a = hn::LoadU(d, x + p);
      b = hn::LoadU(d, x + half + p);
    }
    const V first = hn::NegMulAdd(b, s, hn::Mul(a, c)), second = hn::MulAdd(a, s, hn::Mul(b, c));
    if (interleaved) {
      hn::StoreInterleaved2(first, second, d, y + 2 * p);
    } else {
      hn::StoreU(first, d, y + p);
      hn::StoreU(second, d, y + half + p);
    }
  }
  for (; p < half; ++p) {
    const int64_t i = interleaved ? 2 * p : p, j = interleaved ? 2 * p + 1 : p + half;
    const float a = x[i], b = x[j], c = cos[p], s = direction * sin[p];
    y[i] = a * c - b * s;
    y[j] = b * c + a * s;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hierarchos::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hierarchos::ops {

HWY_EXPORT(Rotate);

namespace {

class RopeKernel final : public CpuKernel {
 public:
  explicit RopeKernel(const KernelRequest& request)
      : x_(request.inputs[0]),
        tokens_(x_.shape[0]),
        heads_(x_.shape[1]),
        channels_(x_.shape[2]),
        table_rows_(request.inputs[1].shape[0]),
        half_(request.inputs[1].shape[1]),
        by_position_(request.inputs.size() == 4),
        interleaved_(request.attrs.i_or("interleaved", 0) != 0),
        direction_(request.attrs.i_or("inverse", 0) ? -1.0f : 1.0f) {
    // Blocks of about 16 Ki elements.
    block_ = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, heads_ * channels_));
  }

  std::string name() const override { return fmt::format("rope {}", name_of(x_.dtype)); }

  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override {
    pool.parallel_for((tokens_ + block_ - 1) / block_, [&](int64_t i, int) {
      for (int64_t t = i * block_; t < std::min(tokens_, (i + 1) * block_); ++t) token(operands, t);
    });
  }

 private:
  void token(std::span<std::byte* const> operands, int64_t t) const {
    const auto size = static_cast<int64_t>(size_of(x_.dtype));
    const auto* positions = reinterpret_cast<const int32_t*>(operands[3]);
    // A position outside the tables would read past them; hosts check positions, so it is only kept inside.
    const int64_t row = by_position_ ? std::clamp<int64_t>(positions[t], 0, std::max<int64_t>(0, table_rows_ - 1)) : t;
    const float* cos = reinterpret_cast<const float*>(operands[1]) + row * half_;
    const float* sin = reinterpret_cast<const float*>(operands[2]) + row * half_;
    std::byte* out = operands[by_position_ ? 4 : 3] + t * heads_ * channels_ * size;
    const auto rotate = HWY_DYNAMIC_DISPATCH(Rotate);
    for (int64_t h = 0; h < heads_; ++h, out += channels_ * size) {
      const std::byte* in = operands[0] + (t * x_.strides[0] + h * x_.strides[1]) * size;
      if (x_.dtype == DType::F32) {
        rotate(reinterpret_cast<const float*>(in), cos, sin, half_, interleaved_, direction_,
               reinterpret_cast<float*>(out));
      } else {
        float* room = gemm::thread_buffer(0, 2 * half_);
        gemm::load(in, x_.dtype, 2 * half_, room);
        rotate(room, cos, sin, half_, interleaved_, direction_, room);
        gemm::store(room, 2 * half_, x_.dtype, out);
      }
      std::memcpy(out + 2 * half_ * size, in + 2 * half_ * size, static_cast<size_t>((channels_ - 2 * half_) * size));
    }
  }

  TensorDesc x_;
  int64_t tokens_, heads_, channels_, table_rows_, half_;
  bool by_position_, interleaved_;
  float direction_;
  int64_t block_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> rope_cpu(CpuBackend&, const KernelRequest& request) {
  return std::make_unique<RopeKernel>(request);
}

}  // namespace hierarchos::ops
#endif
