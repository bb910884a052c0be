// Runs a case on a device and compares everything with the reference.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "case.h"

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
std::vector<Check> run_case(const Case& c, Backend& backend, const std::filesystem::path& scratch,
                            const CheckOptions& options);

// The same graphs computed by the operators' float64 references, without any backend: tells a wrong model from a wrong
// kernel. Logits, loss, gradients and AdamW.
std::vector<Check> run_case_reference(const Case& c, const std::filesystem::path& scratch);

// The comparisons.
Check check_logits(const Case& c, const std::vector<double>& ours);
Check check_loss(const Case& c, double ours);
Check check_adamw_loss(const Case& c, size_t step, double ours);
// `gradient`: of the mean loss; empty where the model has none for this tensor.
Check check_gradient(const Case& c, const CaseTensor& t, const std::vector<double>& gradient, double median);
Check check_ids(const std::string& what, const std::vector<int32_t>& ours, const std::vector<int32_t>& truth);

}  // namespace hierarchos::golden
