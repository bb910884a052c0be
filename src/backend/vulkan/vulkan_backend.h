// Vulkan GPUs as devices: Vulkan 1.2 with buffer device addresses, loaded at run time.
//
// Kernels take addresses in push constants, no descriptor sets. A program is recorded once into command buffers and
// submitted again and again.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace hierarchos {

// What kernels may use, after --vulkan-limits has clamped it.
struct VulkanLimits {
  uint32_t subgroup_size = 32;
  uint32_t max_group_size = 128;       // invocations of a workgroup
  uint32_t shared_bytes = 16384;       // of a workgroup
  uint32_t max_groups[3] = {65535, 65535, 65535};
  uint32_t push_constant_bytes = 128;
  int64_t max_allocation = int64_t{1} << 30;
  bool float16 = false;      // shaderFloat16
  bool storage16 = false;    // storageBuffer16BitAccess
  bool storage8 = false;
  bool int64 = false;
  bool int16 = false;
  bool int8 = false;
  bool memory_model = false;
  // Cooperative matrices of 16 × 16 × 16 in subgroups of 32, summed in fp32, of operands in fp16 or bf16.
  bool matrices_f16 = false, matrices_bf16 = false;
  bool preserves_subnormal = false;  // numbers of fp32 below 2⁻¹²⁶, where a shader asks for it
  bool preserves_special = false;   // signed zeros, infinities and NaNs of fp32, where a shader asks for it
};

// A compute pipeline: one entry point of a module (Slang calls a lone one "main") with its specialization constants.
class VulkanPipeline {
 public:
  virtual ~VulkanPipeline() = default;
};

struct PipelineOptions {
  // Arguments reach the shader through a buffer whose address is pushed (8 bytes): for more than 128 bytes of them.
  bool argument_buffer = false;
};

// Records the dispatches of one kernel.
class VulkanRecorder {
 public:
  virtual ~VulkanRecorder() = default;
  // `arguments` become the push constants (at most 128 bytes), or fill an argument buffer. A dispatch of no groups is left out.
  // Group counts must be within VulkanLimits::max_groups; fold_groups() helps.
  virtual void dispatch(const VulkanPipeline& pipeline, std::span<const std::byte> arguments, uint32_t gx, uint32_t gy = 1,
                        uint32_t gz = 1) = 0;
  // Later dispatches see what earlier ones wrote.
  virtual void barrier() = 0;

  template <typename Arguments>
  void dispatch(const VulkanPipeline& pipeline, const Arguments& arguments, uint32_t gx, uint32_t gy = 1, uint32_t gz = 1) {
    dispatch(pipeline, std::as_bytes(std::span(&arguments, 1)), gx, gy, gz);
  }
};

// A line of `groups` workgroups as x × y, rows of 32768; a shader's group index is y · 32768 + x (`folded` of types.slang), and
// it ignores those past `groups`.
struct FoldedGroups {
  uint32_t x = 0, y = 1;
};
FoldedGroups fold_grid(int64_t groups);

class VulkanKernel : public Kernel {
 public:
  // `operands`: inputs, results, scratch, as addresses.
  virtual void record(VulkanRecorder& recorder, std::span<const Address> operands) const = 0;
};

// One graphics card (or software rasteriser), whatever the number of drivers for it.
struct VulkanDeviceEntry {
  int index = 0;          // N of "vulkan:N"
  std::string name, driver, type;  // type: discrete, integrated, virtual, cpu, other
  std::string uuid;       // of the device, hexadecimal
  int64_t memory_total = 0;
  bool usable = false;
  std::string reason;     // why it is chosen first, skipped, or not usable
};
// Ordered as `hierarchos devices` lists them: discrete, integrated, others; software rasterisers last. Empty where there is
// no Vulkan loader or driver; `why` then says what is missing.
std::vector<VulkanDeviceEntry> enumerate_vulkan_devices(std::string* why = nullptr);

struct VulkanOptions {
  int device = -1;        // index of enumerate_vulkan_devices(); -1: the first usable that is no software rasteriser
  std::string name;       // or the first whose name contains this
  std::string limits;     // "shared=32K,group=256,alloc=1G,subgroup=8"
  std::string tier;       // "base" keeps to kernels that every device runs; empty: the best that the device has
  bool validation = false;      // validation layers with synchronization validation, where installed
  bool breadcrumbs = false;     // a mark before every dispatch: slow, names the kernel a device was lost in
  int fail_allocation = -1;     // tests: the n-th device allocation fails
  std::string cache_folder;     // of pipelines; empty: XDG_CACHE_HOME/hierarchos; "-": none
};

class VulkanBackend : public Backend {
 public:
  BackendKind kind() const override { return BackendKind::Vulkan; }
  // Pipeline of an embedded module ("rms_norm/forward_256"), made at first use and kept. Throws DeviceError when the module's
  // shared memory or group size is beyond the limits, UserError when there is no such module.
  virtual const VulkanPipeline& pipeline(std::string_view module, std::string_view entry, std::span<const uint32_t> specialization = {},
                                         const PipelineOptions& options = {}) = 0;
  // The same for code made at run time; equal code gives the same pipeline.
  virtual const VulkanPipeline& pipeline_from_code(std::span<const uint32_t> spirv, std::string_view entry,
                                                   const PipelineOptions& options = {}) = 0;
  virtual const VulkanLimits& limits() const = 0;
  // Messages of the validation layers so far (errors and warnings); 0 when they are off.
  virtual int validation_messages() const = 0;
};

// Throws DeviceError when there is no such device, naming what there is.
std::unique_ptr<VulkanBackend> create_vulkan_backend(const VulkanOptions& options = {});

}  // namespace hierarchos
