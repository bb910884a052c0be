// What operators' Vulkan kernels share: a kernel made of recorded dispatches, folded grids, checks of types.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/vulkan/vulkan_backend.h"
#include "ops/operator.h"

namespace hierarchos::ops {

// Records one execution. `at`: inputs, results, scratch (if it asked for some).
using RecordFn = std::function<void(VulkanRecorder& recorder, std::span<const Address> at)>;

class RecordedKernel final : public VulkanKernel {
 public:
  explicit RecordedKernel(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  int64_t scratch_bytes() const override { return scratch; }
  int dependent_dispatches() const override { return dependent; }
  // A copy of the body is called: bodies fill in their arguments in place, and kernels may be recorded side by side.
  void record(VulkanRecorder& recorder, std::span<const Address> operands) const override {
    RecordFn mine = body;
    mine(recorder, operands);
  }

  RecordFn body = [](VulkanRecorder&, std::span<const Address>) {};
  int64_t scratch = 0;
  int dependent = 1;

 private:
  std::string name_;
};

// The number that shaders know a type by. Throws UnsupportedError for storages and types that the kernels do not read.
uint32_t vulkan_type(const KernelRequest& request, const TensorDesc& operand);
// The same, or 16 + Storage for block storage (slang/blocks.slang), from kernels that decode it.
uint32_t vulkan_type_or_blocks(const KernelRequest& request, const TensorDesc& operand);
// The same as the first, or 0 for an operand that is not there (index -1).
uint32_t vulkan_type_or_none(const KernelRequest& request, int input);

// Largest of 16, 4 and 2 that divides `bytes`: the unit in which rows of so many bytes are copied. Throws for others.
uint32_t copy_unit(const KernelRequest& request, int64_t bytes);

inline uint64_t groups_of(uint64_t items, uint64_t each) { return (items + each - 1) / each; }

// Dispatches `groups` workgroups, folded as the shaders' folded() expects (rows of 32768); nothing when there are none.
template <typename Arguments>
void dispatch(VulkanRecorder& recorder, const VulkanPipeline& pipeline, const Arguments& arguments, uint64_t groups) {
  constexpr uint64_t kRow = 32768;
  if (groups == 0) return;
  if (groups > kRow * 65535)
    throw UnsupportedError("a kernel would need {} workgroups, more than {}", groups, kRow * 65535);
  const uint64_t x = groups < kRow ? groups : kRow;
  recorder.dispatch(pipeline, arguments, static_cast<uint32_t>(x), static_cast<uint32_t>(groups_of(groups, kRow)));
}

// Extents that kernels count in 32 bits. Throws UnsupportedError beyond.
uint32_t narrow(const KernelRequest& request, int64_t extent);

}  // namespace hierarchos::ops
