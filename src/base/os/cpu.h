// What the processor offers this process.
#pragma once

namespace hierarchos {

// Physical cores that the process may run on: its affinity mask, with hardware threads of one core counted once, and a
// container's CPU quota (rounded up). At least 1.
int usable_cores();

}  // namespace hierarchos
