// Expands a program's plans over addresses into the flat list that a device replays.
#pragma once

#include "runtime/program.h"

namespace hierarchos {

struct BindAddresses {
  std::vector<Address> arguments;  // of the root: a leaf each
  std::vector<Address> results;    // outputs
  Address arena = 0;
};

struct BoundInfo {
  BoundProgram program;
  // For each bound step, the plan's step it came from: requests for the debug mode, costs for explain.
  std::vector<const PlanStep*> origins;
  int64_t barriers = 0;
  int64_t critical_path = 0;  // dependent dispatches
};

BoundInfo bind(const Program& program, const BindAddresses& addresses);

}  // namespace hierarchos
