// The linear recurrence on the CPU. Forward: a task is (segment, head, some rows of the state), which are independent.
// Backward: a task is (segment, head): it runs forward once and keeps a state every `stride` tokens, then goes back a
// stretch at a time, whose states it computes again.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "ops/cpu_tasks.h"
#include "ops/matmul/matmul/gemm.h"
#include "ops/operator.h"
#include "ops/scan/linear_scan/linear_scan.h"
#include "ops/scan/linear_scan/steps.h"

namespace hierarchos::ops {
namespace {

using scan_steps::Token;

// Operands: state, r, k, v, log_decay, offsets, u, w.
enum Operand : size_t { kState, kR, kK, kV, kDecay, kOffsets, kU, kW };

class ScanProblem {
 public:
  ScanProblem(const KernelRequest& request, size_t first_operand) : first(first_operand) {
    descs.assign(request.inputs.begin() + static_cast<int64_t>(first), request.inputs.end());
    uw = descs.size() == 8;
    tokens = descs[kR].shape[0];
    heads = descs[kR].shape[1];
    keys = descs[kR].shape[2];
    values = descs[kV].shape[2];
    segments = descs[kOffsets].shape[0] - 1;
    decay_by_channel = descs[kDecay].shape.rank() == 3;
    width = scan_steps::padded(keys);
  }

  size_t first;
  std::vector<TensorDesc> descs;
  bool uw = false, decay_by_channel = false;
  int64_t tokens = 0, heads = 0, keys = 0, values = 0, segments = 0;
  int64_t width = 0;  // of a row of Nk, padded

  // Rows of a segment, kept inside the token axis.
  int64_t begin(std::span<std::byte* const> operands, int64_t b) const {
    return std::clamp<int64_t>(reinterpret_cast<const int32_t*>(operands[first + kOffsets])[b], 0, tokens);
  }

  // `n` elements at row (t, h) of an operand.
  void row(std::span<std::byte* const> operands, size_t operand, int64_t t, int64_t h, int64_t from, int64_t n,
           float* to) const {
    const TensorDesc& desc = descs[operand];
    const int64_t at = (t * heads + h) * desc.shape[2] + from;
    gemm::load(operands[first + operand] + at * static_cast<int64_t>(size_of(desc.dtype)), desc.dtype, n, to);
  }

  double work() const { return 3.0 * static_cast<double>(tokens * heads) * static_cast<double>(keys * values); }
  int64_t token_floats() const { return 6 * width; }
  // Reads a token's rows to `room` (zeroed once by the caller, so that the padding is zero).
  Token token(std::span<std::byte* const> operands, int64_t t, int64_t h, float* room) const {
    float *r = room, *k = r + width, *u = k + width, *w = u + width, *decay = w + width, *logs = decay + width;
    row(operands, kR, t, h, 0, keys, r);
    row(operands, kK, t, h, 0, keys, k);
    const float* given = reinterpret_cast<const float*>(operands[first + kDecay]);
    if (decay_by_channel) {
      std::copy_n(given + (t * heads + h) * keys, keys, logs);
      scan_steps::exponentials(logs, width, decay);
    } else {
      std::fill_n(decay, keys, std::exp(given[t * heads + h]));
    }
    Token token{decay, k, r, nullptr, nullptr};
    if (uw) {
      row(operands, kU, t, h, 0, keys, u);
      row(operands, kW, t, h, 0, keys, w);
      token.u = u;
      token.w = w;
    }
    return token;
  }

  // Rows of the token axis that no segment has: [0, offsets[0]) and [offsets[B], T).
  template <typename Fn>
  void for_uncovered(std::span<std::byte* const> operands, Fn&& fn) const {
    const int64_t first_row = segments > 0 ? begin(operands, 0) : tokens;
    for (int64_t t = 0; t < first_row; ++t) fn(t);
    for (int64_t t = segments > 0 ? std::max(first_row, begin(operands, segments)) : tokens; t < tokens; ++t) fn(t);
  }
};

class LinearScanKernel final : public CpuKernel {
 public:
  explicit LinearScanKernel(const KernelRequest& request) : p_(request, 0), y_(request.outputs[0].dtype) {
    // Whole heads, unless they are few: lanes are rows, so cutting them changes no bits.
    const int64_t lanes = scan_steps::lanes();
    rows_ = scan_steps::padded(std::max<int64_t>(p_.values, 1));
    while (rows_ > lanes && p_.segments * p_.heads * ((p_.values + rows_ - 1) / rows_) < 8)
      rows_ = scan_steps::padded(rows_ / 2);
    rows_ = std::min(rows_, 4 * lanes);
  }

  std::string name() const override { return "linear_scan"; }

  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override {
    const int64_t parts = (p_.values + rows_ - 1) / rows_;
    const auto y_size = static_cast<int64_t>(size_of(y_));
    std::byte* y = operands[p_.descs.size()];
    p_.for_uncovered(operands, [&](int64_t t) {
      std::fill_n(y + t * p_.heads * p_.values * y_size, p_.heads * p_.values * y_size, std::byte{0});
    });
    for_tasks(pool, p_.work(), p_.segments * p_.heads * parts,
              [&](int64_t i) { part(operands, i / (p_.heads * parts), i / parts % p_.heads, i % parts * rows_); });
  }

 private:
  void part(std::span<std::byte* const> operands, int64_t b, int64_t h, int64_t from) const {
    const int64_t count = std::min(rows_, p_.values - from);
    const int64_t at = ((b * p_.heads + h) * p_.values + from) * p_.keys;
    float* state = gemm::thread_buffer(0, p_.keys * rows_ + 2 * rows_ + p_.token_floats());
    float *v = state + p_.keys * rows_, *y = v + rows_, *room = y + rows_;
    std::fill_n(state, p_.keys * rows_ + 2 * rows_ + p_.token_floats(), 0.0f);
    const float* in = reinterpret_cast<const float*>(operands[kState]) + at;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < p_.keys; ++j) state[j * rows_ + i] = in[i * p_.keys + j];
    const auto size = static_cast<int64_t>(size_of(y_));
    const int64_t end = p_.begin(operands, b + 1);
    for (int64_t t = p_.begin(operands, b); t < end; ++t) {
      const Token token = p_.token(operands, t, h, room);
      p_.row(operands, kV, t, h, from, count, v);
      scan_steps::forward(token, p_.keys, rows_, state, v, y);
      gemm::store(y, count, y_, operands[p_.descs.size()] + ((t * p_.heads + h) * p_.values + from) * size);
    }
    float* out = reinterpret_cast<float*>(operands[p_.descs.size() + 1]) + at;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < p_.keys; ++j) out[i * p_.keys + j] = state[j * rows_ + i];
  }

  ScanProblem p_;
  DType y_;
  int64_t rows_ = 1;  // of the state, a task
};

class LinearScanBackwardKernel final : public CpuKernel {
 public:
  explicit LinearScanBackwardKernel(const KernelRequest& request)
      : p_(request, 2), dy_(request.inputs[0].dtype), results_(request.outputs) {
    stride_ = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(p_.tokens)))));
    slots_ = p_.tokens / stride_ + p_.segments + 1;
  }

  std::string name() const override { return "linear_scan_backward"; }

  // Saved states of every head.
  int64_t scratch_bytes() const override {
    return p_.heads * slots_ * p_.values * p_.width * static_cast<int64_t>(sizeof(float));
  }

  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override {
    const auto results = operands.subspan(2 + p_.descs.size());
    p_.for_uncovered(operands, [&](int64_t t) {
      for (size_t i = 1; i < results_.size(); ++i) {
        const int64_t bytes = results_[i].bytes() / p_.tokens;
        std::fill_n(results[i] + t * bytes, bytes, std::byte{0});
      }
    });
    for_tasks(pool, 3 * p_.work(), p_.segments * p_.heads,
              [&](int64_t i) { segment(operands, results, i / p_.heads, i % p_.heads); });
  }

 private:
  void load_state(const std::byte* from, int64_t b, int64_t h, float* to) const {
    const float* in = reinterpret_cast<const float*>(from) + (b * p_.heads + h) * p_.values * p_.keys;
    for (int64_t i = 0; i < p_.values; ++i) {
      std::copy_n(in + i * p_.keys, p_.keys, to + i * p_.width);
      std::fill_n(to + i * p_.width + p_.keys, p_.width - p_.keys, 0.0f);
    }
  }

  void segment(std::span<std::byte* const> operands, std::span<std::byte* const> results, int64_t b, int64_t h) const {
    const int64_t size = p_.values * p_.width, begin = p_.begin(operands, b),
                  end = std::max(begin, p_.begin(operands, b + 1));
    // Segments' slots do not overlap: stretch n of segment b begins at row begin + n·stride.
    float* saved = reinterpret_cast<float*>(operands.back()) + (h * slots_ + begin / stride_ + b) * size;
    float* states = gemm::thread_buffer(1, (stride_ + 1) * size);
    float* g = gemm::thread_buffer(0, size + p_.token_floats() + 5 * p_.width + 3 * p_.values);
    float *room = g + size, *sums = room + p_.token_floats(), *v = sums + 5 * p_.width, *dy = v + p_.values,
          *dv = dy + p_.values;
    std::fill_n(room, p_.token_floats(), 0.0f);

    const int64_t stretches = (end - begin + stride_ - 1) / stride_;
    load_state(operands[2 + kState], b, h, states);
    float* now = states;
    for (int64_t t = begin; t < end; ++t) {
      if ((t - begin) % stride_ == 0) std::copy_n(now, size, saved + (t - begin) / stride_ * size);
      if ((t - begin) / stride_ == stretches - 1) break;  // the last stretch is computed below
      const Token token = p_.token(operands, t, h, room);
      p_.row(operands, kV, t, h, 0, p_.values, v);
      float* next = now == states ? states + size : states;
      scan_steps::advance(token, p_.values, p_.keys, now, v, next);
      now = next;
    }

    load_state(operands[1], b, h, g);
    for (int64_t n = stretches; n-- > 0;) {
      const int64_t first = begin + n * stride_, last = std::min(end, first + stride_);
      std::copy_n(saved + n * size, size, states);
      for (int64_t t = first; t < last; ++t) {
        const Token token = p_.token(operands, t, h, room);
        p_.row(operands, kV, t, h, 0, p_.values, v);
        scan_steps::advance(token, p_.values, p_.keys, states + (t - first) * size, v, states + (t - first + 1) * size);
      }
      for (int64_t t = last; t-- > first;) {
        const Token token = p_.token(operands, t, h, room);
        p_.row(operands, kV, t, h, 0, p_.values, v);
        gemm::load(operands[0] + (t * p_.heads + h) * p_.values * static_cast<int64_t>(size_of(dy_)), dy_, p_.values,
                   dy);
        std::fill_n(sums, 5 * p_.width, 0.0f);
        const scan_steps::TokenGrads grads{.r = sums,
                                           .k = sums + p_.width,
                                           .decay = sums + 2 * p_.width,
                                           .u = sums + 3 * p_.width,
                                           .w = sums + 4 * p_.width,
                                           .v = dv};
        const float* before = states + (t - first) * size;
        scan_steps::backward(token, p_.values, p_.keys, before, before + size, v, dy, g, grads);
        write(results, t, h, grads);
      }
    }
    float* dstate = reinterpret_cast<float*>(results[0]) + (b * p_.heads + h) * p_.values * p_.keys;
    for (int64_t i = 0; i < p_.values; ++i) std::copy_n(g + i * p_.width, p_.keys, dstate + i * p_.keys);
  }

  void write(std::span<std::byte* const> results, int64_t t, int64_t h, const scan_steps::TokenGrads& grads) const {
    const int64_t row = t * p_.heads + h;
    const auto put = [&](size_t result, const float* from, int64_t n) {
      const DType dtype = results_[result].dtype;
      gemm::store(from, n, dtype, results[result] + row * n * static_cast<int64_t>(size_of(dtype)));
    };
    put(1, grads.r, p_.keys);
    put(2, grads.k, p_.keys);
    put(3, grads.v, p_.values);
    if (p_.decay_by_channel) {
      put(4, grads.decay, p_.keys);
    } else {
      float sum = 0;
      for (int64_t j = 0; j < p_.keys; ++j) sum += grads.decay[j];
      put(4, &sum, 1);
    }
    if (p_.uw) {
      put(5, grads.u, p_.keys);
      put(6, grads.w, p_.keys);
    }
  }

  ScanProblem p_;
  DType dy_;
  std::vector<TensorDesc> results_;
  int64_t stride_ = 1, slots_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> linear_scan_cpu(CpuBackend&, const KernelRequest& request) {
  return std::make_unique<LinearScanKernel>(request);
}

std::unique_ptr<Kernel> linear_scan_backward_cpu(CpuBackend&, const KernelRequest& request) {
  return std::make_unique<LinearScanBackwardKernel>(request);
}

}  // namespace hierarchos::ops
