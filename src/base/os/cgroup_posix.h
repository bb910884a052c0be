// Limits that a container puts on the process (Linux control groups, versions 1 and 2).
#pragma once

#include <cstdint>

namespace hierarchos {

// CPUs' worth of time that may be used; 0 if there is no limit.
double cgroup_cpu_quota();

struct CgroupMemory {
  int64_t limit = 0;  // bytes; 0 if there is no limit
  int64_t used = 0;   // bytes charged that cannot be reclaimed (file cache not in active use is not counted)
};
// The tightest limit (least left) of the process's group and its parents.
CgroupMemory cgroup_memory();

}  // namespace hierarchos
