// What a bound program does, in words: for `hierarchos explain` and for people who wonder where time and memory go.
#pragma once

#include <string>
#include <vector>

#include "runtime/session.h"

namespace hierarchos {

// Work of one call of a body (a layer), or of what stands between the calls.
struct ScopeWork {
  std::string scope;           // "model.layers.3"; "" is everything outside calls
  int64_t dispatches = 0;
  int64_t dependent = 0;       // longest chain of dependent dispatches from its first to its last
  double flops = 0, bytes = 0;
};

// Work by call of the root, in order of execution.
std::vector<ScopeWork> work_by_scope(const Session& session);

struct ExplainOptions {
  bool kernels = false;  // list every distinct body's kernels
};
std::string explain(const Session& session, const ExplainOptions& options = {});

}  // namespace hierarchos
