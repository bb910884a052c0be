#include "backend/vulkan/vulkan_backend.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backend/vulkan/vulkan_device.h"

namespace hierarchos {
namespace {

// A device to test on: a real card if there is one, else the software rasteriser.
std::unique_ptr<VulkanBackend> any_device(VulkanOptions options = {}) {
  const auto devices = enumerate_vulkan_devices();
  for (const auto& d : devices)
    if (d.usable) {
      options.device = d.index;
      options.cache_folder = "-";
      return create_vulkan_backend(options);
    }
  return nullptr;
}

#define NEED_DEVICE(backend) \
  if (!(backend)) GTEST_SKIP() << "no usable Vulkan device"

// Counts *flag times: adds its first operand to its second, by the predicate module's own kernel.
class CopyKernel final : public VulkanKernel {
 public:
  CopyKernel(VulkanBackend& backend, uint32_t count)
      : pipeline_(backend.pipeline("predicate/counts", "main")), count_(count) {}
  std::string name() const override { return "copy"; }
  void record(VulkanRecorder& recorder, std::span<const Address> operands) const override {
    struct Push {
      Address flag, wanted, actual;
      uint32_t count, padding;
    } push{operands[0], operands[1], operands[2], count_, 0};
    recorder.dispatch(pipeline_, push, (count_ + 63) / 64);
  }

 private:
  const VulkanPipeline& pipeline_;
  uint32_t count_;
};

TEST(VulkanBackend, UploadsAndDownloads) {
  const auto backend = any_device();
  NEED_DEVICE(backend);
  const auto buffer = backend->allocate(40 << 20, "test");
  std::vector<uint32_t> data(10 << 20), back(data.size());
  std::iota(data.begin(), data.end(), 7u);
  backend->upload(buffer->address(), std::as_bytes(std::span(data)));
  backend->download(buffer->address(), std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(data, back);
  backend->fill_zero(buffer->address() + 400, 8);
  backend->download(buffer->address(), std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back[99], data[99]);
  EXPECT_EQ(back[100], 0u);
  EXPECT_EQ(back[101], 0u);
  EXPECT_EQ(back[102], data[102]);
  EXPECT_THROW(backend->upload(buffer->address() + (40 << 20), std::as_bytes(std::span(data))), UserError);
}

// A chain a → b → c with barriers, the second half predicated.
TEST(VulkanBackend, BarriersAndPredicates) {
  VulkanOptions options;
  std::unique_ptr<VulkanBackend> backend;
  try {
    options.validation = true;
    backend = any_device(options);
  } catch (const DeviceError&) {
    backend = any_device();  // no validation layers
  }
  NEED_DEVICE(backend);
  constexpr uint32_t kCount = 1000;
  const auto memory = backend->allocate(1 << 20, "test");
  const Address base = memory->address();
  const Address one = base, flag = base + 256, a = base + 4096, b = base + 16384, c = base + 32768;
  const CopyKernel copy(*backend, kCount);
  BoundProgram program;
  program.labels = {"first", "second"};
  program.operands = {one, a, b, one, b, c};
  program.predicates = {flag};
  program.steps.resize(2);
  program.steps[0] = {&copy, 0, 2, 1, 3, false, false, -1, 0};
  program.steps[1] = {&copy, 3, 2, 1, 3, true, false, 0, 1};
  const auto recording = backend->record(program);
  std::vector<uint32_t> data(kCount), back(kCount);
  std::iota(data.begin(), data.end(), 1u);
  const uint32_t yes = 1;
  backend->upload(one, std::as_bytes(std::span(&yes, 1)));
  backend->upload(a, std::as_bytes(std::span(data)));
  for (const uint32_t value : {0u, 1u, 0u}) {
    backend->fill_zero(b, kCount * 4);
    backend->fill_zero(c, kCount * 4);
    backend->upload(flag, std::as_bytes(std::span(&value, 1)));
    backend->run(*recording, 2);
    backend->wait();
    backend->download(b, std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, data);
    backend->download(c, std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, value ? data : std::vector<uint32_t>(kCount, 0u));
  }
  EXPECT_EQ(backend->validation_messages(), 0);
}

TEST(VulkanBackend, FailedAllocationsAreErrorsAndLoseNothing) {
  NEED_DEVICE(any_device());
  for (int n = 0; n < 3; ++n) {
    VulkanOptions options;
    options.fail_allocation = n;
    try {
      const auto backend = any_device(options);
      const auto first = backend->allocate(1000, "first");
      const auto second = backend->allocate(1000, "second");
      FAIL() << n;
    } catch (const DeviceError& e) {
      EXPECT_NE(std::string(e.what()).find("could not be allocated"), std::string::npos) << e.what();
    }
  }
}

TEST(VulkanBackend, LimitsClampAndNeverRaise) {
  VulkanLimits limits;
  limits.shared_bytes = 65536;
  limits.max_group_size = 1024;
  limits.subgroup_size = 32;
  vulkan::clamp_limits(limits, "shared=32K,group=256,alloc=512M,subgroup=64");
  EXPECT_EQ(limits.shared_bytes, 32768u);
  EXPECT_EQ(limits.max_group_size, 256u);
  EXPECT_EQ(limits.max_allocation, int64_t{512} << 20);
  EXPECT_EQ(limits.subgroup_size, 32u);
  for (const char* bad : {"shared", "shared=", "shared=-1", "shared=1T", "registers=3", "shared=32Kx"})
    EXPECT_THROW(vulkan::clamp_limits(limits, bad), UserError) << bad;
}

TEST(VulkanBackend, ClampedAllocationIsRefusedWithNeedAndHave) {
  VulkanOptions options;
  options.limits = "alloc=1M";
  const auto backend = any_device(options);
  NEED_DEVICE(backend);
  try {
    backend->allocate(2 << 20, "weights");
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("weights: 2.0 MiB are wanted at once and this device allocates at most 1.0 MiB"), std::string::npos)
        << e.what();
  }
}

TEST(VulkanBackend, UnknownDevicesAreNamed) {
  if (enumerate_vulkan_devices().empty()) GTEST_SKIP() << "no Vulkan";
  VulkanOptions options;
  options.device = 99;
  EXPECT_THROW(create_vulkan_backend(options), DeviceError);
  options.device = -1;
  options.name = "no such card";
  EXPECT_THROW(create_vulkan_backend(options), DeviceError);
}

TEST(VulkanBackend, GridsFold) {
  EXPECT_EQ(fold_grid(0).x, 0u);
  EXPECT_EQ(fold_grid(32768).y, 1u);
  EXPECT_EQ(fold_grid(32769).x, 32768u);
  EXPECT_EQ(fold_grid(32769).y, 2u);
}

}  // namespace
}  // namespace hierarchos
