// Devices by name, for programs' --device options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace hierarchos {

struct DeviceOptions {
  std::string vulkan_limits;  // clamps a Vulkan device to smaller limits, for tests (VulkanOptions::limits)
  std::string vulkan_tier;    // "base": only kernels that every Vulkan device runs; empty: the best that it has
  bool validation = false;    // Vulkan's validation layers
};

// "cpu", "vulkan" (the best one that is no software rasteriser) or "vulkan:N" (as `hierarchos devices` numbers them).
// Throws UserError for another name, DeviceError when there is no such device.
std::unique_ptr<Backend> open_backend(const std::string& name, const DeviceOptions& options = {});

struct DeviceEntry {
  std::string name;  // what open_backend takes
  DeviceInfo info;
  bool usable = true;
  std::string note;  // why it is chosen first, or skipped
};
std::vector<DeviceEntry> list_devices();

}  // namespace hierarchos
