#include "runtime/device_choice.h"

#include <charconv>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"

namespace hierarchos {

std::unique_ptr<Backend> open_backend(const std::string& name, const DeviceOptions& options) {
  if (name == "cpu") return std::make_unique<CpuBackend>();
  VulkanOptions vulkan;
  vulkan.limits = options.vulkan_limits;
  vulkan.tier = options.vulkan_tier;
  vulkan.validation = options.validation;
  if (name.starts_with("vulkan:")) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + 7, end, vulkan.device);
    if (error == std::errc{} && stop == end && vulkan.device >= 0) return create_vulkan_backend(vulkan);
  } else if (name == "vulkan") {
    return create_vulkan_backend(vulkan);
  }
  throw UserError("unknown device \"{}\": use cpu, vulkan or vulkan:N", name);
}

std::vector<DeviceEntry> list_devices() {
  std::vector<DeviceEntry> devices;
  std::string why;
  for (const VulkanDeviceEntry& v : enumerate_vulkan_devices(&why)) {
    DeviceEntry entry;
    entry.name = fmt::format("vulkan:{}", v.index);
    entry.info.kind = BackendKind::Vulkan;
    entry.info.name = v.name;
    entry.info.driver = v.driver;
    entry.info.memory_total = v.memory_total;
    entry.usable = v.usable;
    entry.note = v.reason;
    devices.push_back(std::move(entry));
  }
  DeviceEntry cpu{"cpu", CpuBackend().info(), true, {}};
  if (devices.empty() && !why.empty()) cpu.note = "no Vulkan device: " + why;
  devices.push_back(std::move(cpu));
  return devices;
}

}  // namespace hierarchos
