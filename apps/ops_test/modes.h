// What the driver does with one case in each mode.
#pragma once

#include "case_data.h"

namespace hierarchos::ops_test {

enum class Outcome { Passed, Failed, Unsupported, Skipped };

struct Report {
  Outcome outcome = Outcome::Passed;
  std::string text;  // why not, or figures
};

struct Device {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Backend> other;  // the CPU with another number of threads: its results must be the same bits
  double copy_bytes_per_second = 0;  // measured for perf
};

Report run_test(const NamedCase& c, Device& device);
Report run_grad(const NamedCase& c, Device& device);
Report run_perf(const NamedCase& c, Device& device);
Report run_support(const NamedCase& c, Device& device);
// Bytes a second that a large copy moves (read and written).
double measure_copy(Backend& backend);

}  // namespace hierarchos::ops_test
