#include "backend/cpu/cpu_backend.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/hash.h"

namespace hierarchos {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(int64_t bytes, const std::string& name) : size_(bytes) {
    // Large buffers start at a huge page, so that the kernel may back them by such.
    const size_t alignment = bytes >= static_cast<int64_t>(kHugePage) ? kHugePage : 64;
    const size_t rounded = (static_cast<size_t>(bytes) + alignment - 1) / alignment * alignment;
    data_ = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
    if (!data_) throw DeviceError("{}: {} bytes of host memory could not be allocated", name, bytes);
    if (alignment == kHugePage) madvise(data_, rounded, MADV_HUGEPAGE);
  }
  ~CpuBuffer() override { std::free(data_); }
  Address address() const override { return reinterpret_cast<Address>(data_); }
  int64_t size() const override { return size_; }

 private:
  void* data_;
  int64_t size_;
};

class CpuRecording final : public Recording {
 public:
  BoundProgram program;
  std::vector<std::byte*> pointers;  // of program.operands
};

std::byte* pointer(Address address) { return reinterpret_cast<std::byte*>(address); }

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "CPU";
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("MemAvailable:", 0) == 0) return std::stoll(line.substr(13)) * 1024;
  return 0;
}

}  // namespace

DeviceInfo CpuBackend::info() const {
  DeviceInfo info;
  info.kind = BackendKind::Cpu;
  info.name = fmt::format("{}, {} threads", processor_name(), pool_.size());
  info.driver = "host";
  info.memory_total = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  info.memory_available = available_memory();
  info.max_allocation = info.memory_total;
  Hasher h;
  h.add(std::string_view(info.name));
  info.fingerprint = h.value();
  return info;
}

std::unique_ptr<Buffer> CpuBackend::allocate(int64_t bytes, const std::string& name) { return std::make_unique<CpuBuffer>(bytes, name); }

void CpuBackend::upload(Address to, std::span<const std::byte> data) {
  if (!data.empty()) std::memcpy(pointer(to), data.data(), data.size());
}

void CpuBackend::download(Address from, std::span<std::byte> data) {
  if (!data.empty()) std::memcpy(data.data(), pointer(from), data.size());
}

void CpuBackend::fill_zero(Address at, int64_t bytes) { std::memset(pointer(at), 0, static_cast<size_t>(bytes)); }

std::unique_ptr<Recording> CpuBackend::record(const BoundProgram& program) {
  auto recording = std::make_unique<CpuRecording>();
  recording->program = program;
  for (Address a : program.operands) recording->pointers.push_back(pointer(a));
  return recording;
}

void CpuBackend::run(Recording& recording, int times) {
  auto& r = static_cast<CpuRecording&>(recording);
  const auto& steps = r.program.steps;
  for (int i = 0; i < times; ++i)
    for (size_t s = 0; s < steps.size(); ++s) {
      const BoundStep& step = steps[s];
      if (step.predicate >= 0) {
        int32_t flag;
        std::memcpy(&flag, pointer(r.program.predicates[static_cast<size_t>(step.predicate)]), sizeof(flag));
        if (flag == 0) continue;
      }
      static_cast<const CpuKernel*>(step.kernel)->run(pool_, {r.pointers.data() + step.first_operand, step.operands});
    }
}

}  // namespace hierarchos
