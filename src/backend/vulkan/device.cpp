// Device, memory, transfers and submissions.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/vulkan/extensions.h"
#include "backend/vulkan/vulkan_device.h"
#include "base/hash.h"

namespace hierarchos {
namespace vulkan {
namespace {

// Kernels are written for workgroups of this many invocations; every card since about 2012 runs them.
constexpr uint32_t kGroupSize = 256;
constexpr int64_t kStagingBytes = int64_t{16} << 20;

std::string mib(int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

const Candidate& choose(const std::vector<Candidate>& cards, const VulkanOptions& options) {
  std::string list;
  for (const Candidate& c : cards) list += fmt::format("{}vulkan:{} {} ({})", list.empty() ? "" : ", ", c.entry.index, c.entry.name, c.entry.type);
  if (list.empty()) list = "none";
  for (const Candidate& c : cards) {
    const bool wanted = options.device >= 0      ? c.entry.index == options.device
                        : !options.name.empty() ? c.entry.name.find(options.name) != std::string::npos
                                                : c.entry.usable && c.entry.type != "software";
    if (!wanted) continue;
    if (!c.entry.usable) throw DeviceError("{} cannot be used: {}", c.entry.name, c.entry.reason);
    return c;
  }
  if (options.device >= 0) throw DeviceError("there is no device vulkan:{}; there are: {}", options.device, list);
  if (!options.name.empty()) throw DeviceError("no Vulkan device is called \"{}\"; there are: {}", options.name, list);
  throw DeviceError("there is no graphics card with a usable Vulkan driver (there are: {}); use --device cpu", list);
}

}  // namespace

Device::Device(const VulkanOptions& options) : options_(options), instance_(options.validation) {
  const std::vector<Candidate> cards = candidates(instance_.handle());
  const Candidate& card = choose(cards, options);
  physical_ = card.device;
  entry_ = card.entry;
  try {
    create_device();
  } catch (...) {
    crumbs_.reset();
    staging_.reset();
    if (device_) {
      if (timeline_) vk_.vkDestroySemaphore(device_, timeline_, nullptr);
      if (layout_) vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
      if (pool_) vk_.vkDestroyCommandPool(device_, pool_, nullptr);
      if (cache_) vk_.vkDestroyPipelineCache(device_, cache_, nullptr);
      vk_.vkDestroyDevice(device_, nullptr);
    }
    throw;
  }
}

void Device::create_device() {
  driver_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceFloatControlsProperties floats{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
  floats.pNext = &driver_;
  subgroup.pNext = &floats;
  VkPhysicalDeviceMaintenance3Properties maintenance{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  maintenance.pNext = &subgroup;
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  properties.pNext = &maintenance;
  vkGetPhysicalDeviceProperties2(physical_, &properties);
  driver_.pNext = nullptr;
  properties_ = properties.properties;
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory_);

  VkPhysicalDeviceVulkan12Features have12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features have11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  have11.pNext = &have12;
  VkPhysicalDeviceFeatures2 have{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  have.pNext = &have11;
  vkGetPhysicalDeviceFeatures2(physical_, &have);

  VkPhysicalDeviceVulkan12Features use12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  use12.bufferDeviceAddress = VK_TRUE;
  use12.timelineSemaphore = VK_TRUE;
  use12.storageBuffer8BitAccess = have12.storageBuffer8BitAccess;
  use12.shaderFloat16 = have12.shaderFloat16;
  use12.shaderInt8 = have12.shaderInt8;
  use12.vulkanMemoryModel = have12.vulkanMemoryModel;
  use12.vulkanMemoryModelDeviceScope = have12.vulkanMemoryModelDeviceScope;
  use12.shaderSubgroupExtendedTypes = have12.shaderSubgroupExtendedTypes;
  use12.scalarBlockLayout = have12.scalarBlockLayout;
  VkPhysicalDeviceVulkan11Features use11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  use11.pNext = &use12;
  use11.storageBuffer16BitAccess = have11.storageBuffer16BitAccess;
  VkPhysicalDeviceFeatures2 use{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  use.pNext = &use11;
  use.features.shaderInt64 = VK_TRUE;
  use.features.shaderInt16 = have.features.shaderInt16;

  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  const auto compute = std::find_if(families.begin(), families.end(), [](const auto& f) { return f.queueFlags & VK_QUEUE_COMPUTE_BIT; });
  if (compute == families.end()) throw DeviceError("{} has no compute queue", entry_.name);
  family_ = static_cast<uint32_t>(compute - families.begin());

  uint32_t extension_count = 0;
  check(vkEnumerateDeviceExtensionProperties(physical_, nullptr, &extension_count, nullptr), "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> extensions(extension_count);
  check(vkEnumerateDeviceExtensionProperties(physical_, nullptr, &extension_count, extensions.data()), "vkEnumerateDeviceExtensionProperties");
  std::vector<const char*> enabled;
  const auto enable = [&](const char* name) {
    const bool there = std::ranges::any_of(extensions, [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
    if (there) enabled.push_back(name);
    return there;
  };
  budget_ = enable(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  const Matrices matrices = supported_matrices(subgroup.subgroupSize);
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR use_matrices{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR use_bf16{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
  if (matrices.f16 && use12.shaderFloat16 && use12.vulkanMemoryModel && use11.storageBuffer16BitAccess && enable(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) {
    limits_.matrices_f16 = true;
    use_matrices.cooperativeMatrix = VK_TRUE;
    use_matrices.pNext = std::exchange(use.pNext, &use_matrices);
    if (matrices.bf16 && enable(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME)) {
      limits_.matrices_bf16 = true;
      use_bf16.shaderBFloat16Type = use_bf16.shaderBFloat16CooperativeMatrix = VK_TRUE;
      use_bf16.pNext = std::exchange(use.pNext, &use_bf16);
    }
  }

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &use;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(enabled.size());
  info.ppEnabledExtensionNames = enabled.data();
  check(vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice");
  volkLoadDeviceTable(&vk_, device_);
  vk_.vkGetDeviceQueue(device_, family_, 0, &queue_);

  limits_.subgroup_size = subgroup.subgroupSize;
  limits_.max_group_size = properties_.limits.maxComputeWorkGroupInvocations;
  limits_.shared_bytes = properties_.limits.maxComputeSharedMemorySize;
  std::copy_n(properties_.limits.maxComputeWorkGroupCount, 3, limits_.max_groups);
  limits_.push_constant_bytes = std::min<uint32_t>(128, properties_.limits.maxPushConstantsSize);
  limits_.max_allocation = static_cast<int64_t>(std::min<VkDeviceSize>(maintenance.maxMemoryAllocationSize, INT64_MAX));
  limits_.float16 = use12.shaderFloat16;
  limits_.storage16 = use11.storageBuffer16BitAccess;
  limits_.storage8 = use12.storageBuffer8BitAccess;
  limits_.int64 = true;
  limits_.int16 = use.features.shaderInt16;
  limits_.int8 = use12.shaderInt8;
  limits_.memory_model = use12.vulkanMemoryModel;
  limits_.preserves_special = floats.shaderSignedZeroInfNanPreserveFloat32;
  limits_.preserves_subnormal =
      floats.shaderDenormPreserveFloat32 && floats.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  clamp_limits(limits_, options_.limits);
  if (limits_.subgroup_size != 32) limits_.matrices_f16 = limits_.matrices_bf16 = false;
  if (limits_.max_group_size < kGroupSize)
    throw DeviceError("{} runs workgroups of {}, the kernels need {}", entry_.name, limits_.max_group_size, kGroupSize);
  unified_ = properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || properties_.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;

  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = family_;
  check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, limits_.push_constant_bytes};
  VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  check(vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
  VkSemaphoreTypeCreateInfo timeline{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  timeline.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  semaphore.pNext = &timeline;
  check(vk_.vkCreateSemaphore(device_, &semaphore, nullptr, &timeline_), "vkCreateSemaphore");
  load_cache();
  crumbs_ = std::make_unique<DeviceBuffer>(*this, 256, "breadcrumbs", true);
  std::memset(crumbs_->mapped(), 0xFF, 256);
}

Device::Matrices Device::supported_matrices(uint32_t subgroup_size) const {
  // The validation layers of Debian 12 do not know the extensions, and take their use for an error.
  if (options_.tier == "base" || options_.validation || subgroup_size != 32) return {};
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
      vkGetInstanceProcAddr(instance_.handle(), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  uint32_t count = 0;
  if (!list || list(physical_, &count, nullptr) != VK_SUCCESS || count == 0) return {};
  std::vector<VkCooperativeMatrixPropertiesKHR> shapes(count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR, nullptr, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  if (list(physical_, &count, shapes.data()) != VK_SUCCESS) return {};
  Matrices out;
  for (const auto& s : shapes) {
    if (s.MSize != 16 || s.NSize != 16 || s.KSize != 16 || s.scope != VK_SCOPE_SUBGROUP_KHR || s.AType != s.BType ||
        s.CType != VK_COMPONENT_TYPE_FLOAT32_KHR || s.ResultType != VK_COMPONENT_TYPE_FLOAT32_KHR)
      continue;
    out.f16 = out.f16 || s.AType == VK_COMPONENT_TYPE_FLOAT16_KHR;
    out.bf16 = out.bf16 || s.AType == VK_COMPONENT_TYPE_BFLOAT16_KHR;
  }
  return out;
}

Device::~Device() {
  if (queue_) vk_.vkDeviceWaitIdle(device_);
  {
    const std::lock_guard lock(jobs_mutex_);
    jobs_stop_ = true;
  }
  jobs_wake_.notify_all();
  for (std::thread& t : builders_) t.join();
  for (auto& [key, p] : pipelines_) {
    try {
      vk_.vkDestroyPipeline(device_, p->handle(), nullptr);
    } catch (const Error&) {
      // It was never made.
    }
  }
  try {
    save_cache();
  } catch (const std::exception&) {
    // The cache only saves time.
  }
  crumbs_.reset();
  staging_.reset();
  vk_.vkDestroyPipelineCache(device_, cache_, nullptr);
  vk_.vkDestroySemaphore(device_, timeline_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
  vk_.vkDestroyCommandPool(device_, pool_, nullptr);
  vk_.vkDestroyDevice(device_, nullptr);
}

DeviceInfo Device::info() const {
  DeviceInfo info;
  info.kind = BackendKind::Vulkan;
  info.name = entry_.name;
  info.driver = entry_.driver;
  info.memory_total = entry_.memory_total;
  info.memory_available = entry_.memory_total - allocated_;
  if (budget_) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    memory.pNext = &budget;
    vkGetPhysicalDeviceMemoryProperties2(physical_, &memory);
    int64_t most = 0;
    for (uint32_t h = 0; h < memory_.memoryHeapCount; ++h)
      if (memory_.memoryHeaps[h].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
        most = std::max(most, static_cast<int64_t>(budget.heapBudget[h]) - static_cast<int64_t>(budget.heapUsage[h]));
    info.memory_available = most;
  }
  info.max_allocation = limits_.max_allocation;
  Hasher h;
  h.add(static_cast<uint64_t>(properties_.vendorID));
  h.add(static_cast<uint64_t>(properties_.deviceID));
  h.add(static_cast<uint64_t>(properties_.driverVersion));
  h.add(std::string_view(options_.limits));
  h.add(static_cast<uint64_t>(limits_.matrices_f16 + 2 * limits_.matrices_bf16));
  info.fingerprint = h.value();
  return info;
}

uint32_t Device::memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags avoided) const {
  uint32_t fallback = UINT32_MAX;
  for (uint32_t t = 0; t < memory_.memoryTypeCount; ++t) {
    const VkMemoryPropertyFlags flags = memory_.memoryTypes[t].propertyFlags;
    if (!(allowed & (1u << t)) || (flags & wanted) != wanted) continue;
    if (!(flags & avoided)) return t;
    if (fallback == UINT32_MAX) fallback = t;
  }
  return fallback;
}

DeviceBuffer::DeviceBuffer(Device& device, int64_t bytes, const std::string& name, bool host_visible)
    : device_(device), size_((std::max<int64_t>(bytes, 4) + 3) / 4 * 4) {
  const VolkDeviceTable& vk = device.vk_;
  if (size_ > device.limits_.max_allocation)
    throw DeviceError("{}: {} are wanted at once and this device allocates at most {}", name, mib(size_), mib(device.limits_.max_allocation));
  const auto fail = [&](VkResult result) {
    if (buffer_) vk.vkDestroyBuffer(device.device_, buffer_, nullptr);
    if (memory_) vk.vkFreeMemory(device.device_, memory_, nullptr);
    throw DeviceError("{}: {} could not be allocated on {} ({}); {} are in use by this program", name, mib(size_), device.entry_.name,
                      vulkan::name_of(result), mib(device.allocated_));
  };
  if (device.options_.fail_allocation >= 0 && device.allocations_++ == device.options_.fail_allocation) fail(VK_ERROR_OUT_OF_DEVICE_MEMORY);
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = static_cast<VkDeviceSize>(size_);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  VkResult result = vk.vkCreateBuffer(device.device_, &info, nullptr, &buffer_);
  if (result != VK_SUCCESS) fail(result);
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(device.device_, buffer_, &needs);
  constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const bool unified = device.unified_;
  uint32_t type = UINT32_MAX;
  if (host_visible)
    type = device.memory_type(needs.memoryTypeBits, kHost, unified ? 0u : static_cast<VkMemoryPropertyFlags>(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  else if (unified)
    type = device.memory_type(needs.memoryTypeBits, kHost | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0);
  if (type == UINT32_MAX)
    type = device.memory_type(needs.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
  if (type == UINT32_MAX) type = device.memory_type(needs.memoryTypeBits, 0, 0);
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  allocate.pNext = &flags;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  result = vk.vkAllocateMemory(device.device_, &allocate, nullptr, &memory_);
  if (result != VK_SUCCESS) fail(result);
  result = vk.vkBindBufferMemory(device.device_, buffer_, memory_, 0);
  if (result != VK_SUCCESS) fail(result);
  const VkMemoryPropertyFlags got = device.memory_.memoryTypes[type].propertyFlags;
  if ((host_visible || unified) && (got & kHost) == kHost) {
    void* at = nullptr;
    result = vk.vkMapMemory(device.device_, memory_, 0, VK_WHOLE_SIZE, 0, &at);
    if (result != VK_SUCCESS) fail(result);
    mapped_ = static_cast<std::byte*>(at);
  }
  VkBufferDeviceAddressInfo address{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
  address.buffer = buffer_;
  address_ = vk.vkGetBufferDeviceAddress(device.device_, &address);
  device.buffers_.emplace(address_, this);
  device.allocated_ += size_;
}

DeviceBuffer::~DeviceBuffer() {
  try {
    device_.wait();
  } catch (const Error&) {
    // A lost device: only freeing is left.
  }
  device_.buffers_.erase(address_);
  device_.allocated_ -= size_;
  device_.vk_.vkDestroyBuffer(device_.device_, buffer_, nullptr);
  device_.vk_.vkFreeMemory(device_.device_, memory_, nullptr);
}

std::unique_ptr<Buffer> Device::allocate(int64_t bytes, const std::string& name) {
  return std::make_unique<DeviceBuffer>(*this, bytes, name, false);
}

Device::Located Device::locate(Address address, int64_t bytes) {
  auto at = buffers_.upper_bound(address);
  if (at != buffers_.begin()) {
    --at;
    const auto offset = static_cast<int64_t>(address - at->first);
    if (offset + bytes <= at->second->size()) return {at->second, static_cast<VkDeviceSize>(offset)};
  }
  throw UserError("{} bytes at {:#x} are in no buffer of this device", bytes, address);
}

void Device::transfer(const std::function<void(VkCommandBuffer)>& record) {
  VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  VkCommandBuffer buffer;
  check(vk_.vkAllocateCommandBuffers(device_, &allocate, &buffer), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  try {
    check(vk_.vkBeginCommandBuffer(buffer, &begin), "vkBeginCommandBuffer");
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    vk_.vkCmdPipelineBarrier(buffer, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
    record(buffer);
    barrier.dstAccessMask |= VK_ACCESS_HOST_READ_BIT;
    vk_.vkCmdPipelineBarrier(buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                             nullptr, 0, nullptr);
    check(vk_.vkEndCommandBuffer(buffer), "vkEndCommandBuffer");
    submit({&buffer, 1});
    wait();
  } catch (...) {
    vk_.vkFreeCommandBuffers(device_, pool_, 1, &buffer);
    throw;
  }
  vk_.vkFreeCommandBuffers(device_, pool_, 1, &buffer);
}

void Device::upload(Address to, std::span<const std::byte> data) {
  if (data.empty()) return;
  const Located at = locate(to, static_cast<int64_t>(data.size()));
  if (at.buffer->mapped()) {
    wait();
    std::memcpy(at.buffer->mapped() + at.offset, data.data(), data.size());
    return;
  }
  if (!staging_) staging_ = std::make_unique<DeviceBuffer>(*this, std::min(kStagingBytes, limits_.max_allocation), "staging", true);
  wait();
  for (size_t done = 0; done < data.size();) {
    const size_t n = std::min(data.size() - done, static_cast<size_t>(staging_->size()));
    std::memcpy(staging_->mapped(), data.data() + done, n);
    transfer([&](VkCommandBuffer buffer) {
      const VkBufferCopy copy{0, at.offset + done, n};
      vk_.vkCmdCopyBuffer(buffer, staging_->handle(), at.buffer->handle(), 1, &copy);
    });
    done += n;
  }
}

void Device::download(Address from, std::span<std::byte> data) {
  if (data.empty()) return;
  const Located at = locate(from, static_cast<int64_t>(data.size()));
  wait();
  if (at.buffer->mapped()) {
    std::memcpy(data.data(), at.buffer->mapped() + at.offset, data.size());
    return;
  }
  if (!staging_) staging_ = std::make_unique<DeviceBuffer>(*this, std::min(kStagingBytes, limits_.max_allocation), "staging", true);
  for (size_t done = 0; done < data.size();) {
    const size_t n = std::min(data.size() - done, static_cast<size_t>(staging_->size()));
    transfer([&](VkCommandBuffer buffer) {
      const VkBufferCopy copy{at.offset + done, 0, n};
      vk_.vkCmdCopyBuffer(buffer, at.buffer->handle(), staging_->handle(), 1, &copy);
    });
    std::memcpy(data.data() + done, staging_->mapped(), n);
    done += n;
  }
}

void Device::fill_zero(Address address, int64_t bytes) {
  if (bytes <= 0) return;
  const Located at = locate(address, bytes);
  wait();
  if (at.buffer->mapped()) {
    std::memset(at.buffer->mapped() + at.offset, 0, static_cast<size_t>(bytes));
    return;
  }
  // Places are aligned, so rounding up stays inside.
  const auto size = static_cast<VkDeviceSize>((bytes + 3) / 4 * 4);
  transfer([&](VkCommandBuffer buffer) { vk_.vkCmdFillBuffer(buffer, at.buffer->handle(), at.offset, size, 0); });
}

void Device::submit(std::span<const VkCommandBuffer> buffers) {
  const uint64_t value = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.pNext = &timeline;
  info.commandBufferCount = static_cast<uint32_t>(buffers.size());
  info.pCommandBuffers = buffers.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  const VkResult result = vk_.vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
  if (result == VK_ERROR_DEVICE_LOST) lost("vkQueueSubmit");
  check(result, "vkQueueSubmit");
  submitted_ = value;
}

void Device::wait() {
  if (submitted_ == 0) return;
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &submitted_;
  const VkResult result = vk_.vkWaitSemaphores(device_, &info, UINT64_MAX);
  if (result == VK_ERROR_DEVICE_LOST) lost("vkWaitSemaphores");
  check(result, "vkWaitSemaphores");
}

void Device::lost(const char* what) {
  std::string where;
  if (crumbs_ && crumbs_->mapped() && current_) {
    uint32_t step;
    std::memcpy(&step, crumbs_->mapped(), sizeof(step));
    if (step < current_->steps.size()) {
      const BoundStep& s = current_->steps[step];
      where = fmt::format("; the last mark is before {} ({})", current_->labels[s.label], s.kernel->name());
    }
  }
  throw DeviceError("{} was lost during {}{}", entry_.name, what, where);
}

}  // namespace vulkan

std::unique_ptr<VulkanBackend> create_vulkan_backend(const VulkanOptions& options) { return std::make_unique<vulkan::Device>(options); }

}  // namespace hierarchos
