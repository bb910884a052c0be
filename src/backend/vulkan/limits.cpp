// --vulkan-limits, and what a module needs of them.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "backend/vulkan/vulkan_device.h"

namespace hierarchos::vulkan {

void clamp_limits(VulkanLimits& limits, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = item.find('=');
    int64_t value = 0;
    bool good = equals != std::string::npos;
    if (good) {
      const char* first = item.data() + equals + 1;
      const char* last = item.data() + item.size();
      auto [stop, error] = std::from_chars(first, last, value);
      good = error == std::errc() && value > 0;
      if (good && stop != last) {
        const char unit = *stop;
        good = stop + 1 == last && (unit == 'K' || unit == 'M' || unit == 'G');
        value <<= unit == 'K' ? 10 : unit == 'M' ? 20 : 30;
      }
    }
    if (!good) throw UserError("--vulkan-limits: \"{}\" is not NAME=NUMBER with an optional K, M or G", item);
    const std::string name = item.substr(0, equals);
    const auto small = static_cast<uint32_t>(std::min<int64_t>(value, UINT32_MAX));
    if (name == "shared")
      limits.shared_bytes = std::min(limits.shared_bytes, small);
    else if (name == "group")
      limits.max_group_size = std::min(limits.max_group_size, small);
    else if (name == "alloc")
      limits.max_allocation = std::min(limits.max_allocation, value);
    else if (name == "subgroup")
      limits.subgroup_size = std::min(limits.subgroup_size, small);
    else
      throw UserError("--vulkan-limits: {} is not one of shared, group, alloc, subgroup", name);
  }
}

ModuleNeeds needs_of(std::span<const uint32_t> code, std::string_view entry) {
  constexpr uint32_t kMagic = 0x07230203, kWorkgroup = 4;
  constexpr uint32_t kLocalSize = 17;
  if (code.size() < 5 || code[0] != kMagic) throw UserError("this is no SPIR-V module");
  std::map<uint32_t, int64_t> size;       // of types, bytes
  std::map<uint32_t, uint32_t> pointee;   // workgroup pointer → type
  std::map<uint32_t, uint32_t> constant;
  ModuleNeeds needs;
  uint32_t entry_id = 0;
  for (size_t at = 5; at < code.size();) {
    const uint32_t words = code[at] >> 16, op = code[at] & 0xFFFF;
    if (words == 0 || at + words > code.size()) throw UserError("a SPIR-V module is cut off");
    const uint32_t* w = code.data() + at;
    switch (op) {
      case 15: {  // OpEntryPoint model id name
        const auto* name = reinterpret_cast<const char*>(w + 3);
        if (std::string_view(name, strnlen(name, (words - 3) * 4)) == entry) entry_id = w[2];
        break;
      }
      case 16:  // OpExecutionMode
        if (w[1] == entry_id && w[2] == kLocalSize) needs.group_size = w[3] * w[4] * w[5];
        break;
      case 20: size[w[1]] = 4; break;               // OpTypeBool
      case 21:
      case 22: size[w[1]] = w[2] / 8; break;        // OpTypeInt, OpTypeFloat
      case 23:
      case 24: size[w[1]] = size[w[2]] * w[3]; break;  // OpTypeVector, OpTypeMatrix
      case 28: size[w[1]] = size[w[2]] * constant[w[3]]; break;  // OpTypeArray
      case 30: {                                     // OpTypeStruct
        int64_t total = 0;
        for (uint32_t m = 2; m < words; ++m) total += (size[w[m]] + 3) / 4 * 4;
        size[w[1]] = total;
        break;
      }
      case 32:  // OpTypePointer
        if (w[2] == kWorkgroup) pointee[w[1]] = w[3];
        break;
      case 43:
      case 50: constant[w[2]] = w[3]; break;  // OpConstant, OpSpecConstant (its default)
      case 59:                                // OpVariable
        if (w[3] == kWorkgroup) needs.shared_bytes += size[pointee[w[1]]];
        break;
      default: break;
    }
    at += words;
  }
  if (entry_id == 0) throw UserError("a SPIR-V module has no entry point {}", entry);
  return needs;
}

}  // namespace hierarchos::vulkan
