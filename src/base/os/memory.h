// Memory of the machine and of this process. All figures in bytes.
#pragma once

#include <cstdint>

namespace hierarchos {

struct HostMemory {
  int64_t total = 0;      // physical memory, or a container's limit where that is less
  int64_t available = 0;  // what may be allocated now without swapping
};
// Throws Error if the system does not say.
HostMemory host_memory();

struct ProcessMemory {
  int64_t resident = 0;       // now
  int64_t peak_resident = 0;  // since the process began
};
ProcessMemory process_memory();

}  // namespace hierarchos
