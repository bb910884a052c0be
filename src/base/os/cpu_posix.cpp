#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "base/os/cgroup_posix.h"
#include "base/os/cpu.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace hierarchos {

#ifdef __linux__
namespace {

// Distinct cores of the affinity mask; 0 if it cannot be read. The list of a core's hardware threads names the core.
int cores_of_affinity() {
  cpu_set_t* mask = nullptr;
  int capacity = 1024;
  size_t bytes = 0;
  for (;; capacity *= 2) {  // the kernel's mask may be larger than cpu_set_t
    mask = CPU_ALLOC(static_cast<size_t>(capacity));
    if (mask == nullptr) return 0;
    bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    if (sched_getaffinity(0, bytes, mask) == 0) break;
    CPU_FREE(mask);
    if (capacity >= (1 << 20)) return 0;
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < capacity; ++cpu) {
    if (!CPU_ISSET_S(static_cast<size_t>(cpu), bytes, mask)) continue;
    std::string core;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    if (!std::getline(file, core) || core.empty()) core = "cpu" + std::to_string(cpu);
    cores.insert(core);
  }
  CPU_FREE(mask);
  return static_cast<int>(cores.size());
}

}  // namespace

int usable_cores() {
  int cores = cores_of_affinity();
  if (cores == 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  const double quota = cgroup_cpu_quota();
  if (quota > 0 && quota < cores) cores = static_cast<int>(std::ceil(quota));
  return std::max(cores, 1);
}
#else
int usable_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }
#endif

}  // namespace hierarchos
