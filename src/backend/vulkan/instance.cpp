// The loader, the instance and the list of devices.
#include <algorithm>
#include <cstring>

#include "backend/vulkan/vulkan_device.h"

namespace hierarchos {
namespace vulkan {

const char* name_of(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    default: return "an unexpected VkResult";
  }
}

void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) throw DeviceError("{} failed: {} ({})", what, name_of(result), static_cast<int>(result));
}

VKAPI_ATTR VkBool32 VKAPI_CALL Instance::message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
                                                 const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  if (severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT) {
    ++static_cast<Instance*>(user)->messages_;
    std::fprintf(stderr, "vulkan validation: %s\n", data->pMessage);
  }
  return VK_FALSE;
}

namespace {

bool has_layer(const char* name) {
  uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  return std::any_of(layers.begin(), layers.end(), [&](const auto& l) { return std::strcmp(l.layerName, name) == 0; });
}

VkResult initialise_loader() {
  static const VkResult result = volkInitialize();
  return result;
}

}  // namespace

Instance::Instance(bool validation) {
  if (initialise_loader() != VK_SUCCESS) throw DeviceError("no Vulkan loader (libvulkan.so.1) is installed; use --device cpu, or install your card's Vulkan driver");
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = "hierarchos";
  application.apiVersion = VK_API_VERSION_1_2;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  const VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &enable;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (validation) {
    if (!has_layer(layer)) throw DeviceError("Vulkan validation layers are not installed (package vulkan-validationlayers)");
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  const VkResult result = vkCreateInstance(&info, nullptr, &instance_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) throw DeviceError("no Vulkan driver is installed; use --device cpu, or install your card's Vulkan driver");
  check(result, "vkCreateInstance");
  volkLoadInstanceOnly(instance_);
  if (!validation) return;
  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = message;
  messenger.pUserData = this;
  check(vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

Instance::~Instance() {
  if (messenger_) vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  if (instance_) vkDestroyInstance(instance_, nullptr);
}

namespace {

const char* type_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return "software";
    default: return "other";
  }
}

int rank_of(const std::string& type) {
  const char* order[] = {"discrete", "integrated", "virtual", "other", "software"};
  return static_cast<int>(std::find(std::begin(order), std::end(order), type) - std::begin(order));
}

// What the kernels cannot do without.
std::string missing_features(VkPhysicalDevice device, uint32_t api) {
  if (api < VK_API_VERSION_1_2) return fmt::format("its driver has Vulkan {}.{}, 1.2 is needed", VK_API_VERSION_MAJOR(api), VK_API_VERSION_MINOR(api));
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v12, {}};
  vkGetPhysicalDeviceFeatures2(device, &features);
  if (!v12.bufferDeviceAddress) return "its driver has no bufferDeviceAddress";
  if (!v12.timelineSemaphore) return "its driver has no timelineSemaphore";
  if (!features.features.shaderInt64) return "its driver has no shaderInt64";
  return {};
}

}  // namespace

std::vector<Candidate> candidates(VkInstance instance) {
  uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  check(vkEnumeratePhysicalDevices(instance, &count, devices.data()), "vkEnumeratePhysicalDevices");
  std::vector<Candidate> out;
  for (VkPhysicalDevice device : devices) {
    VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties id{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &id, {}};
    vkGetPhysicalDeviceProperties2(device, &properties);
    if (properties.properties.apiVersion >= VK_API_VERSION_1_2) {
      id.pNext = &driver;
      vkGetPhysicalDeviceProperties2(device, &properties);
    }
    Candidate c;
    c.device = device;
    c.entry.name = properties.properties.deviceName;
    c.entry.driver = fmt::format("{} {}", driver.driverName, driver.driverInfo);
    c.entry.type = type_name(properties.properties.deviceType);
    for (uint8_t byte : id.deviceUUID) c.entry.uuid += fmt::format("{:02x}", byte);
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(device, &memory);
    for (uint32_t h = 0; h < memory.memoryHeapCount; ++h)
      if (memory.memoryHeaps[h].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
        c.entry.memory_total = std::max(c.entry.memory_total, static_cast<int64_t>(memory.memoryHeaps[h].size));
    c.entry.reason = missing_features(device, properties.properties.apiVersion);
    c.entry.usable = c.entry.reason.empty();
    out.push_back(std::move(c));
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(rank_of(a.entry.type), !a.entry.usable) < std::pair(rank_of(b.entry.type), !b.entry.usable);
  });
  // A card with two drivers is listed once, with the driver that can be used.
  std::vector<Candidate> cards;
  for (Candidate& c : out) {
    const bool known = std::any_of(cards.begin(), cards.end(), [&](const Candidate& k) { return k.entry.uuid == c.entry.uuid; });
    if (!known) cards.push_back(std::move(c));
  }
  bool chosen = false;
  for (size_t i = 0; i < cards.size(); ++i) {
    VulkanDeviceEntry& e = cards[i].entry;
    e.index = static_cast<int>(i);
    if (!e.usable) continue;
    if (e.type == "software") {
      e.reason = "a software rasteriser: only when asked for by --device";
    } else if (!chosen) {
      chosen = true;
      e.reason = "the default: the first card";
    } else {
      e.reason = fmt::format("usable: --device vulkan:{}", i);
    }
  }
  return cards;
}

}  // namespace vulkan

std::vector<VulkanDeviceEntry> enumerate_vulkan_devices(std::string* why) {
  std::vector<VulkanDeviceEntry> out;
  try {
    const vulkan::Instance instance(false);
    for (const auto& c : vulkan::candidates(instance.handle())) out.push_back(c.entry);
    if (out.empty() && why) *why = "the Vulkan drivers report no device";
  } catch (const DeviceError& e) {
    if (why) *why = e.what();
  }
  return out;
}

FoldedGroups fold_grid(int64_t groups) {
  constexpr int64_t kRow = 32768;
  if (groups <= kRow) return {static_cast<uint32_t>(std::max<int64_t>(groups, 0)), 1};
  const int64_t rows = (groups + kRow - 1) / kRow;
  if (rows > 65535) throw UnsupportedError("a dispatch of {} workgroups", groups);
  return {static_cast<uint32_t>(kRow), static_cast<uint32_t>(rows)};
}

}  // namespace hierarchos
