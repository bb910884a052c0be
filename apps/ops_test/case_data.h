// Cases with their data: what all modes start from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/testing/op_case.h"
#include "runtime/interpreter.h"
#include "runtime/session.h"

namespace hierarchos::ops_test {

struct NamedCase {
  std::string op;
  OpCase c;
  std::string name() const { return op + " " + c.name; }
};

// All registered cases whose operator and name match the globs (* and ?). Throws UserError if two have the same name.
std::vector<NamedCase> select_cases(const std::string& op_glob, const std::string& case_glob);
bool glob_match(std::string_view pattern, std::string_view text);

// The inputs' values, the same in every run: drawn from the case's name, rounded to what their types hold.
std::vector<HostTensor> make_inputs(const NamedCase& c);
// Fixed numbers of about unit size for the operand `index` of a case.
std::vector<double> draw(const std::string& name, size_t index, size_t count);

std::string input_name(size_t i);   // "i0"
std::string output_name(size_t i);  // "o0"

// Declares the case's inputs: block-quantised ones are parameters; states are states where `with_states`.
std::vector<Value> declare_inputs(Graph& graph, const OpCase& c, bool with_states);
// The graph of a case: its inputs, what it builds, an output a result. Results that take over a state update it.
// Without `state_outputs`, results that take over a state are no outputs: they would be copied.
std::shared_ptr<Graph> case_graph(const OpCase& c, bool state_outputs = true);

// A compiled graph with its data on the device, and garbage where its kernels will write.
struct Loaded {
  std::shared_ptr<Program> program;
  std::shared_ptr<Storehouse> store;
  std::unique_ptr<Session> session;
};
struct NamedTensor {
  std::string name;
  HostTensor value;
};
Loaded load(std::shared_ptr<Graph> graph, Backend& backend, const std::vector<NamedTensor>& leaves);
// Fills all memory that kernels only write with NaN, so that what they leave out is seen.
void poison(Loaded& loaded);

// Empty, or how `ours` differs: ‖ours - truth‖ / ‖truth‖ beyond the bound, or places that are not finite in one only.
// Bound 0 asks for equality with the truth rounded to our type, as integers always are.
std::string difference(const HostTensor& ours, const RefTensor& truth, double bound);
// The bound for results of this type: at least one unit of its precision.
double bound_for(DType dtype, double tolerance);

}  // namespace hierarchos::ops_test
