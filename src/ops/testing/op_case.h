// Cases of the operator tests: each operator's test.cpp registers a grid of shapes and types; one driver (ops_test) runs
// them in four modes on any device.
//   test     values against the float64 reference
//   grad     autodiff against central differences in float64, and the gradient's kernels against the reference
//   perf     GB/s and FLOP/s of the cases marked for it, beside the device's measured ceiling
//   support  which device runs which case
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace hierarchos {

struct OpInput {
  enum class Fill : uint8_t {
    Normal,    // scale · standard normal + offset
    Uniform,   // offset + scale · [-1, 1)
    Integers,  // [low, high) (needs an integer type)
    Values,    // as given
  };
  Type type;
  Fill fill = Fill::Normal;
  double scale = 1, offset = 0;
  int64_t low = 0, high = 1;
  std::vector<double> values;
  bool differentiable = true;  // floating inputs are tested in grad mode unless false

  static OpInput normal(DType dtype, Shape shape, double scale = 1, double offset = 0);
  static OpInput uniform(DType dtype, Shape shape, double low, double high);
  static OpInput integers(Shape shape, int64_t low, int64_t high);  // I32
  static OpInput given(DType dtype, Shape shape, std::vector<double> values);
  OpInput& constant() { differentiable = false; return *this; }
};

struct OpCase {
  std::string name;  // "[3, 65] f32 eps=1e-5": unique within the operator
  std::vector<OpInput> inputs;
  // Builds the node(s) under test over root inputs; every result is compared. For an updating operator the input it takes
  // over is declared as a state.
  std::function<std::vector<Value>(Graph&, const std::vector<Value>&)> build;
  std::vector<int> states;     // inputs that are states (taken over)
  // Bound on ‖ours - reference‖ / ‖reference‖ of each result; 0 means exact equality (integers always).
  double tolerance = 2e-6;
  bool grad = true;            // also run in grad mode (small cases only: central differences cost 2 runs an element)
  std::vector<int> grad_results;  // results that grad mode differentiates; empty: all that are floating
  bool perf = false;           // a realistic size for perf mode; not run in test mode
  std::string expect_error;    // building must throw ShapeError/UserError/UnsupportedError whose text contains this
};

using OpCases = std::vector<OpCase>;

// In a test.cpp:  OP_CASES(rms_norm) { cases.push_back({...}); }
struct OpCaseRegistration {
  OpCaseRegistration(const char* op, void (*make)(OpCases&));
};
const std::vector<std::pair<std::string, void (*)(OpCases&)>>& registered_op_cases();

#define OP_CASES(op)                                                                 \
  static void hierarchos_op_cases_##op(::hierarchos::OpCases& cases);                \
  static const ::hierarchos::OpCaseRegistration hierarchos_register_##op(#op, hierarchos_op_cases_##op); \
  static void hierarchos_op_cases_##op([[maybe_unused]] ::hierarchos::OpCases& cases)

}  // namespace hierarchos
