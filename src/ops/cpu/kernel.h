// Makes CPU kernels out of a function.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "backend/cpu/cpu_backend.h"

namespace hierarchos::cpu {

template <typename Run>
class FunctionKernel final : public CpuKernel {
 public:
  FunctionKernel(std::string name, int64_t scratch, Run run) : name_(std::move(name)), scratch_(scratch), run_(std::move(run)) {}
  std::string name() const override { return name_; }
  int64_t scratch_bytes() const override { return scratch_; }
  void run(ThreadPool& pool, std::span<std::byte* const> operands) const override { run_(pool, operands); }

 private:
  std::string name_;
  int64_t scratch_;
  Run run_;
};

// run(ThreadPool&, std::span<std::byte* const> operands)
template <typename Run>
std::unique_ptr<Kernel> make_kernel(std::string name, Run run, int64_t scratch = 0) {
  return std::make_unique<FunctionKernel<Run>>(std::move(name), scratch, std::move(run));
}

// Elements that one task handles: enough to be worth a task, few enough to spread. Work is cut by shape alone, so that
// results do not depend on the number of threads.
inline constexpr int64_t kTaskElements = 16384;

// Calls body(first, last) over [0, rows), several rows of `width` elements a task.
template <typename Body>
void parallel_rows(ThreadPool& pool, int64_t rows, int64_t width, const Body& body) {
  const int64_t step = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(width, 1));
  pool.parallel_for((rows + step - 1) / step, [&](int64_t task, int) {
    body(task * step, std::min(rows, (task + 1) * step));
  });
}

}  // namespace hierarchos::cpu
