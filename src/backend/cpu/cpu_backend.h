// The CPU as a device: kernels are functions over pointers, run in order, each cut over one thread pool.
#pragma once

#include "backend/backend.h"
#include "base/threads.h"

namespace hierarchos {

// A kernel for the CPU. Results must not depend on the number of threads: cut the work by shape, not by pool size.
class CpuKernel : public Kernel {
 public:
  // `operands`: inputs, results, scratch.
  virtual void run(ThreadPool& pool, std::span<std::byte* const> operands) const = 0;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(ThreadPool& pool = default_pool()) : pool_(pool) {}
  BackendKind kind() const override { return BackendKind::Cpu; }
  DeviceInfo info() const override;
  std::unique_ptr<Buffer> allocate(int64_t bytes, const std::string& name) override;
  void upload(Address to, std::span<const std::byte> data) override;
  void download(Address from, std::span<std::byte> data) override;
  void fill_zero(Address at, int64_t bytes) override;
  int64_t alignment() const override { return 64; }
  std::unique_ptr<Recording> record(const BoundProgram& program) override;
  void run(Recording& recording, int times) override;
  void wait() override {}
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool& pool_;
};

}  // namespace hierarchos
