// Inside of the Vulkan backend: the device, its memory and its pipelines.
#pragma once

#include <volk.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "backend/vulkan/vulkan_backend.h"

namespace hierarchos::vulkan {

// Throws DeviceError naming the call for anything but success.
void check(VkResult result, const char* what);
const char* name_of(VkResult result);

// The instance, with or without validation. Loads volk's global functions.
class Instance {
 public:
  explicit Instance(bool validation);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  VkInstance handle() const { return instance_; }
  bool validating() const { return messenger_ != VK_NULL_HANDLE; }
  int messages() const { return messages_; }

 private:
  static VKAPI_ATTR VkBool32 VKAPI_CALL message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
                                                const VkDebugUtilsMessengerCallbackDataEXT* data, void* user);
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::atomic<int> messages_{0};
};

struct Candidate {
  VkPhysicalDevice device;
  VulkanDeviceEntry entry;
};
std::vector<Candidate> candidates(VkInstance instance);

// "shared=32K,group=256,alloc=1G,subgroup=8": never raises a limit. Throws UserError naming what it does not know.
void clamp_limits(VulkanLimits& limits, const std::string& text);

class Device;

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(Device& device, int64_t bytes, const std::string& name, bool host_visible);
  ~DeviceBuffer() override;
  Address address() const override { return address_; }
  int64_t size() const override { return size_; }
  VkBuffer handle() const { return buffer_; }
  std::byte* mapped() const { return mapped_; }  // null where the host does not see it

 private:
  Device& device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  Address address_ = 0;
  int64_t size_ = 0;
  std::byte* mapped_ = nullptr;
};

class Pipeline final : public VulkanPipeline {
 public:
  std::string name;
  bool argument_buffer = false;
  VkPipeline handle() const { return made_.get(); }  // waits for its making; rethrows what went wrong
  std::shared_future<VkPipeline> made_;
};

class Device final : public VulkanBackend {
 public:
  explicit Device(const VulkanOptions& options);
  ~Device() override;

  DeviceInfo info() const override;
  std::unique_ptr<Buffer> allocate(int64_t bytes, const std::string& name) override;
  void upload(Address to, std::span<const std::byte> data) override;
  void download(Address from, std::span<std::byte> data) override;
  void fill_zero(Address at, int64_t bytes) override;
  std::unique_ptr<Recording> record(const BoundProgram& program) override;
  void run(Recording& recording, int times) override;
  void wait() override;
  const VulkanPipeline& pipeline(std::string_view module, std::string_view entry, std::span<const uint32_t> specialization,
                                 const PipelineOptions& options) override;
  const VulkanPipeline& pipeline_from_code(std::span<const uint32_t> spirv, std::string_view entry,
                                           const PipelineOptions& options) override;
  const VulkanLimits& limits() const override { return limits_; }
  int validation_messages() const override { return instance_.messages(); }

  VkDevice handle() const { return device_; }
  const VolkDeviceTable& vk() const { return vk_; }
  VkPipelineLayout layout() const { return layout_; }
  VkCommandPool pool() const { return pool_; }
  bool breadcrumbs() const { return options_.breadcrumbs; }
  DeviceBuffer& crumbs() { return *crumbs_; }
  void forget(const BoundProgram* program) {
    if (current_ == program) current_ = nullptr;
  }

 private:
  friend class DeviceBuffer;
  struct Located {
    DeviceBuffer* buffer;
    VkDeviceSize offset;
  };
  Located locate(Address address, int64_t bytes);
  void create_device();
  struct Matrices {
    bool f16 = false, bf16 = false;
  };
  Matrices supported_matrices(uint32_t subgroup_size) const;  // of 16 × 16 × 16, summed in fp32
  void load_cache();
  void save_cache();
  std::string cache_path() const;
  const VulkanPipeline& make_pipeline(const std::string& key, std::span<const uint32_t> spirv, std::string_view entry,
                                      std::span<const uint32_t> specialization, const PipelineOptions& options);
  VkPipeline build(const std::string& name, std::span<const uint32_t> spirv, const std::string& entry,
                   const std::vector<uint32_t>& specialization);
  uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags avoided) const;
  void submit(std::span<const VkCommandBuffer> buffers);
  void transfer(const std::function<void(VkCommandBuffer)>& record);
  [[noreturn]] void lost(const char* what);

  VulkanOptions options_;
  Instance instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VulkanDeviceEntry entry_;
  VkPhysicalDeviceProperties properties_{};
  VkPhysicalDeviceDriverProperties driver_{};
  VkPhysicalDeviceMemoryProperties memory_{};
  VulkanLimits limits_;
  bool budget_ = false, unified_ = false;
  VkDevice device_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  uint32_t family_ = 0;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  size_t cache_bytes_ = 0;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  uint64_t submitted_ = 0;
  std::unique_ptr<DeviceBuffer> staging_, crumbs_;
  std::map<Address, DeviceBuffer*> buffers_;
  int64_t allocated_ = 0;
  int allocations_ = 0;
  const BoundProgram* current_ = nullptr;

  // Pipelines are made on threads of their own, so that a program's are built side by side.
  std::unordered_map<std::string, std::unique_ptr<Pipeline>> pipelines_;
  std::vector<std::thread> builders_;
  std::deque<std::packaged_task<VkPipeline()>> jobs_;
  std::mutex jobs_mutex_;
  std::condition_variable jobs_wake_;
  bool jobs_stop_ = false;
};

// Bytes of workgroup memory, and the local size, that a module declares.
struct ModuleNeeds {
  int64_t shared_bytes = 0;
  uint32_t group_size = 0;  // 0 where it comes from specialization
};
ModuleNeeds needs_of(std::span<const uint32_t> spirv, std::string_view entry);

}  // namespace hierarchos::vulkan
