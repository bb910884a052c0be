#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/os/cgroup_posix.h"
#include "base/os/memory.h"

namespace hierarchos {
namespace {

// Bytes of a line "Name:   123 kB" of a file of /proc; -1 if there is none.
int64_t proc_value(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string key;
  int64_t kib = 0;
  while (file >> key) {
    if (key == name + ":" && file >> kib) return kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return -1;
}

}  // namespace

HostMemory host_memory() {
  HostMemory memory{proc_value("/proc/meminfo", "MemTotal"), proc_value("/proc/meminfo", "MemAvailable")};
  if (memory.total < 0) memory.total = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (memory.total <= 0) throw Error("the system does not say how much memory it has");
  if (memory.available < 0) memory.available = memory.total / 2;  // not Linux: half is a guess on the safe side
  if (const CgroupMemory group = cgroup_memory(); group.limit > 0) {
    memory.total = std::min(memory.total, group.limit);
    memory.available = std::min(memory.available, std::max<int64_t>(0, group.limit - group.used));
  }
  return memory;
}

ProcessMemory process_memory() {
  ProcessMemory memory{proc_value("/proc/self/status", "VmRSS"), proc_value("/proc/self/status", "VmHWM")};
  rusage usage{};
  if (memory.peak_resident < 0 && getrusage(RUSAGE_SELF, &usage) == 0) {
#ifdef __APPLE__
    memory.peak_resident = usage.ru_maxrss;
#else
    memory.peak_resident = int64_t{usage.ru_maxrss} * 1024;
#endif
  }
  memory.peak_resident = std::max<int64_t>(memory.peak_resident, 0);
  if (memory.resident < 0) memory.resident = memory.peak_resident;
  memory.peak_resident = std::max(memory.peak_resident, memory.resident);
  return memory;
}

}  // namespace hierarchos
