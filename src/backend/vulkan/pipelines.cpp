// Pipelines: made on threads of their own, kept by what went into them, cached on disk by driver.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "backend/vulkan/embedded_spirv.h"
#include "backend/vulkan/vulkan_device.h"
#include "base/hash.h"

namespace hierarchos::vulkan {

std::string Device::cache_path() const {
  if (options_.cache_folder == "-") return {};
  std::filesystem::path folder = options_.cache_folder;
  if (folder.empty()) {
    const char* xdg = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (xdg && *xdg)
      folder = std::filesystem::path(xdg) / "hierarchos";
    else if (home && *home)
      folder = std::filesystem::path(home) / ".cache" / "hierarchos";
    else
      return {};
  }
  std::string name = fmt::format("pipelines-{:04x}-{:04x}-{:08x}-", properties_.vendorID, properties_.deviceID, properties_.driverVersion);
  for (uint8_t byte : properties_.pipelineCacheUUID) name += fmt::format("{:02x}", byte);
  return (folder / name).string();
}

void Device::load_cache() {
  std::vector<char> data;
  const std::string path = cache_path();
  if (!path.empty()) {
    std::ifstream file(path, std::ios::binary);
    data.assign(std::istreambuf_iterator<char>(file), {});
  }
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  if (vk_.vkCreatePipelineCache(device_, &info, nullptr, &cache_) != VK_SUCCESS) {
    info.initialDataSize = 0;  // a file that the driver refuses
    check(vk_.vkCreatePipelineCache(device_, &info, nullptr, &cache_), "vkCreatePipelineCache");
    data.clear();
  }
  cache_bytes_ = data.size();
}

void Device::save_cache() {
  const std::string path = cache_path();
  if (path.empty() || pipelines_.empty()) return;
  size_t size = 0;
  if (vk_.vkGetPipelineCacheData(device_, cache_, &size, nullptr) != VK_SUCCESS || size == cache_bytes_) return;
  std::vector<char> data(size);
  if (vk_.vkGetPipelineCacheData(device_, cache_, &size, data.data()) != VK_SUCCESS) return;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const std::string fresh = path + fmt::format(".{:x}", reinterpret_cast<uintptr_t>(this));
  {
    std::ofstream file(fresh, std::ios::binary);
    file.write(data.data(), static_cast<std::streamsize>(size));
    if (!file.flush()) {
      std::filesystem::remove(fresh);
      return;
    }
  }
  std::filesystem::rename(fresh, path);
}

const VulkanPipeline& Device::pipeline(std::string_view module, std::string_view entry, std::span<const uint32_t> specialization,
                                       const PipelineOptions& options) {
  std::string key = fmt::format("{}:{}:{}", module, entry, options.argument_buffer);
  for (uint32_t v : specialization) key += fmt::format(":{}", v);
  auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return *found->second;
  const auto code = embedded_spirv(module);
  if (code.empty()) throw UserError("there is no shader module {}", module);
  return make_pipeline(key, code, entry, specialization, options);
}

const VulkanPipeline& Device::pipeline_from_code(std::span<const uint32_t> spirv, std::string_view entry, const PipelineOptions& options) {
  const uint64_t a = hash64(std::as_bytes(spirv)), b = hash64(std::as_bytes(spirv), 1);
  const std::string key = fmt::format("code {:016x}{:016x}:{}:{}", a, b, entry, options.argument_buffer);
  auto found = pipelines_.find(key);
  if (found != pipelines_.end()) return *found->second;
  return make_pipeline(key, spirv, entry, {}, options);
}

const VulkanPipeline& Device::make_pipeline(const std::string& key, std::span<const uint32_t> spirv, std::string_view entry,
                                            std::span<const uint32_t> specialization, const PipelineOptions& options) {
  const ModuleNeeds needs = needs_of(spirv, entry);
  if (needs.shared_bytes > limits_.shared_bytes)
    throw DeviceError("shader {} needs {} bytes of shared memory, {} has {}", key, needs.shared_bytes, entry_.name, limits_.shared_bytes);
  if (needs.group_size > limits_.max_group_size)
    throw DeviceError("shader {} has workgroups of {}, {} allows {}", key, needs.group_size, entry_.name, limits_.max_group_size);
  if (builders_.empty()) {
    const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
    for (unsigned t = 0; t < threads; ++t)
      builders_.emplace_back([this] {
        while (true) {
          std::packaged_task<VkPipeline()> job;
          {
            std::unique_lock lock(jobs_mutex_);
            jobs_wake_.wait(lock, [&] { return jobs_stop_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
          }
          job();
        }
      });
  }
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->name = key;
  pipeline->argument_buffer = options.argument_buffer;
  std::packaged_task<VkPipeline()> job(
      [this, key, code = std::vector<uint32_t>(spirv.begin(), spirv.end()), name = std::string(entry),
       constants = std::vector<uint32_t>(specialization.begin(), specialization.end())] { return build(key, code, name, constants); });
  pipeline->made_ = job.get_future().share();
  {
    const std::lock_guard lock(jobs_mutex_);
    jobs_.push_back(std::move(job));
  }
  jobs_wake_.notify_one();
  return *pipelines_.emplace(key, std::move(pipeline)).first->second;
}

VkPipeline Device::build(const std::string& name, std::span<const uint32_t> spirv, const std::string& entry,
                         const std::vector<uint32_t>& specialization) {
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = spirv.size_bytes();
  module_info.pCode = spirv.data();
  VkShaderModule module;
  check(vk_.vkCreateShaderModule(device_, &module_info, nullptr, &module), name.c_str());
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < specialization.size(); ++i) entries.push_back({i, i * 4, 4});
  VkSpecializationInfo constants{};
  constants.mapEntryCount = static_cast<uint32_t>(entries.size());
  constants.pMapEntries = entries.data();
  constants.dataSize = specialization.size() * 4;
  constants.pData = specialization.data();
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = entry.c_str();
  info.stage.pSpecializationInfo = specialization.empty() ? nullptr : &constants;
  info.layout = layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vk_.vkCreateComputePipelines(device_, cache_, 1, &info, nullptr, &pipeline);
  vk_.vkDestroyShaderModule(device_, module, nullptr);
  if (result != VK_SUCCESS) throw DeviceError("the driver could not build shader {}: {}", name, name_of(result));
  return pipeline;
}

}  // namespace hierarchos::vulkan
