// Runs a case on a device and compares everything with the reference.
#pragma once

#include <string>
#include <vector>

#include "apps/golden/case.h"
#include "backend/backend.h"

namespace hierarchos::golden {

// One comparison: passes where ratio ≤ 1.
struct Check {
  std::string what;  // "logits", "gradient lm_head.weight"
  double ratio = 0;  // error over its bound
  std::string note;  // what was wrong, for ids
};

struct CheckOptions {
  bool forward = true, backward = true, adamw = true, generate = true;
  bool debug = false;  // step by step beside the reference, naming the first node that differs
};

// The config must be one that models::describe honours. `scratch`: a folder to write the package to.
std::vector<Check> run_case(const Case& c, Backend& backend, const std::filesystem::path& scratch, const CheckOptions& options);

}  // namespace hierarchos::golden
