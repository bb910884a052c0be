// Programs as command buffers.
#include <cstring>

#include "backend/vulkan/vulkan_device.h"

namespace hierarchos::vulkan {
namespace {

// A command buffer ends at the first allowed place after this many dispatches: bounds a submission's time, and is short
// enough for the host to record the next while this one runs.
constexpr int kDispatchesPerBuffer = 200;
constexpr int64_t kChunkBytes = 64 << 10;

class DeviceRecording final : public Recording {
 public:
  explicit DeviceRecording(Device& d) : device(d) {}
  ~DeviceRecording() override {
    device.forget(&program);
    try {
      device.wait();
    } catch (const Error&) {
      // A lost device: only freeing is left.
    }
    if (!buffers.empty())
      device.vk().vkFreeCommandBuffers(device.handle(), device.pool(), static_cast<uint32_t>(buffers.size()), buffers.data());
  }
  Device& device;
  BoundProgram program;  // labels and kernels for reports
  std::vector<VkCommandBuffer> buffers;
  std::vector<std::unique_ptr<DeviceBuffer>> chunks;  // argument buffers, group counts of predicated dispatches
};

class Recorder final : public VulkanRecorder {
 public:
  Recorder(Device& device, DeviceRecording& recording) : device_(device), recording_(recording) {}

  void dispatch(const VulkanPipeline& pipeline, std::span<const std::byte> arguments, uint32_t gx, uint32_t gy, uint32_t gz) override {
    if (gx == 0 || gy == 0 || gz == 0) return;
    const auto& p = static_cast<const Pipeline&>(pipeline);
    const VulkanLimits& limits = device_.limits();
    if (gx > limits.max_groups[0] || gy > limits.max_groups[1] || gz > limits.max_groups[2])
      throw DeviceError("{}: {} × {} × {} workgroups are more than the device takes", p.name, gx, gy, gz);
    Command c{Command::Kind::Dispatch, &p, {}, {gx, gy, gz}, {}};
    if (p.argument_buffer) {
      const auto [buffer, offset] = take(static_cast<int64_t>(arguments.size()));
      std::memcpy(buffer->mapped() + offset, arguments.data(), arguments.size());
      const Address at = buffer->address() + static_cast<Address>(offset);
      c.push.resize(sizeof(at));
      std::memcpy(c.push.data(), &at, sizeof(at));
    } else {
      if (arguments.size() > limits.push_constant_bytes)
        throw UserError("{}: {} bytes of push constants, {} fit; use an argument buffer", p.name, arguments.size(), limits.push_constant_bytes);
      c.push.assign(arguments.begin(), arguments.end());
    }
    if (deferring_)
      deferred_.push_back(std::move(c));
    else
      write(c);
    ++dispatches_;
  }

  void barrier() override {
    if (deferring_)
      deferred_.push_back({Command::Kind::Barrier, nullptr, {}, {}, {}});
    else
      write_barrier();
  }

  void begin_buffer() {
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = device_.pool();
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    check(device_.vk().vkAllocateCommandBuffers(device_.handle(), &allocate, &buffer_), "vkAllocateCommandBuffers");
    recording_.buffers.push_back(buffer_);
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // a run may repeat it
    check(device_.vk().vkBeginCommandBuffer(buffer_, &begin), "vkBeginCommandBuffer");
    bound_ = nullptr;
    dispatches_ = 0;
    write_barrier();
  }
  void end_buffer() { check(device_.vk().vkEndCommandBuffer(buffer_), "vkEndCommandBuffer"); }
  bool full() const { return dispatches_ >= kDispatchesPerBuffer; }

  // Marks that the steps before `step` have been started.
  void mark(uint32_t step) {
    if (deferring_)
      deferred_.push_back({Command::Kind::Mark, nullptr, {}, {step, 0, 0}, {}});
    else
      device_.vk().vkCmdFillBuffer(buffer_, device_.crumbs().handle(), 0, 4, step);
  }

  void begin_predicate() {
    deferring_ = true;
    deferred_.clear();
  }
  // Everything since begin_predicate() runs only if the flag is not 0.
  void end_predicate(Address flag) {
    deferring_ = false;
    uint32_t count = 0;
    for (const Command& c : deferred_) count += c.kind == Command::Kind::Dispatch;
    if (count == 0) return;
    const auto [wanted, wanted_at] = take(count * 12);
    const auto [actual, actual_at] = take(count * 12);
    uint32_t n = 0;
    for (const Command& c : deferred_) {
      if (c.kind != Command::Kind::Dispatch) continue;
      std::memcpy(wanted->mapped() + wanted_at + n * 12, c.groups, 12);
      ++n;
    }
    struct Push {
      Address flag, wanted, actual;
      uint32_t count, padding;
    } push{flag, wanted->address() + static_cast<Address>(wanted_at), actual->address() + static_cast<Address>(actual_at), 3 * count, 0};
    Command counts{Command::Kind::Dispatch, &static_cast<const Pipeline&>(device_.pipeline("predicate/counts", "main", {}, {})), {}, {(3 * count + 63) / 64, 1, 1}, {}};
    counts.push.resize(sizeof(push));
    std::memcpy(counts.push.data(), &push, sizeof(push));
    write(counts);
    write_barrier();
    n = 0;
    for (Command& c : deferred_) {
      if (c.kind == Command::Kind::Barrier) {
        write_barrier();
      } else if (c.kind == Command::Kind::Mark) {
        mark(c.groups[0]);
      } else {
        c.indirect = {actual->handle(), static_cast<VkDeviceSize>(actual_at) + n * 12};
        write(c);
        ++n;
      }
    }
    deferred_.clear();
  }

 private:
  struct Command {
    enum class Kind : uint8_t { Dispatch, Barrier, Mark } kind;
    const Pipeline* pipeline;
    std::vector<std::byte> push;
    uint32_t groups[3];
    std::pair<VkBuffer, VkDeviceSize> indirect;
  };

  void write(const Command& c) {
    const VolkDeviceTable& vk = device_.vk();
    if (bound_ != c.pipeline) vk.vkCmdBindPipeline(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, c.pipeline->handle());
    bound_ = c.pipeline;
    if (!c.push.empty())
      vk.vkCmdPushConstants(buffer_, device_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>((c.push.size() + 3) / 4 * 4), c.push.data());
    if (c.indirect.first)
      vk.vkCmdDispatchIndirect(buffer_, c.indirect.first, c.indirect.second);
    else
      vk.vkCmdDispatch(buffer_, c.groups[0], c.groups[1], c.groups[2]);
  }

  void write_barrier() {
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    device_.vk().vkCmdPipelineBarrier(buffer_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                                      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                                      &barrier, 0, nullptr, 0, nullptr);
  }

  std::pair<DeviceBuffer*, int64_t> take(int64_t bytes) {
    const int64_t size = (bytes + 255) / 256 * 256;
    if (recording_.chunks.empty() || recording_.chunks.back()->size() - used_ < size) {
      recording_.chunks.push_back(std::make_unique<DeviceBuffer>(device_, std::max(size, kChunkBytes), "arguments", true));
      used_ = 0;
    }
    const int64_t at = used_;
    used_ += size;
    return {recording_.chunks.back().get(), at};
  }

  Device& device_;
  DeviceRecording& recording_;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  const Pipeline* bound_ = nullptr;
  int dispatches_ = 0;
  int64_t used_ = 0;
  bool deferring_ = false;
  std::vector<Command> deferred_;
};

}  // namespace

std::unique_ptr<Recording> Device::record(const BoundProgram& program) {
  auto recording = std::make_unique<DeviceRecording>(*this);
  recording->program = program;
  Recorder recorder(*this, *recording);
  recorder.begin_buffer();
  int32_t predicate = -1;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const BoundStep& step = program.steps[s];
    if (step.predicate != predicate) {
      if (predicate >= 0) recorder.end_predicate(program.predicates[static_cast<size_t>(predicate)]);
      predicate = -1;
    }
    if (predicate < 0) {
      if (step.split_before && recorder.full()) {
        recorder.end_buffer();
        recorder.begin_buffer();
        recorder.mark(static_cast<uint32_t>(s));
      } else if (step.barrier_before) {
        recorder.barrier();
      }
      if (step.predicate >= 0) {
        predicate = step.predicate;
        recorder.begin_predicate();
      }
    } else if (step.barrier_before) {
      recorder.barrier();
    }
    if (breadcrumbs()) recorder.mark(static_cast<uint32_t>(s));
    static_cast<const VulkanKernel*>(step.kernel)->record(recorder, {program.operands.data() + step.first_operand, step.operands});
  }
  if (predicate >= 0) recorder.end_predicate(program.predicates[static_cast<size_t>(predicate)]);
  recorder.end_buffer();
  return recording;
}

void Device::run(Recording& recording, int times) {
  auto& r = static_cast<DeviceRecording&>(recording);
  current_ = &r.program;
  std::vector<VkCommandBuffer> buffers;
  for (int i = 0; i < times; ++i) buffers.insert(buffers.end(), r.buffers.begin(), r.buffers.end());
  submit(buffers);
}

}  // namespace hierarchos::vulkan
