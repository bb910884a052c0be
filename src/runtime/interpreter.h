// Runs a graph with the operators' references, value by value: the oracle for tests and for the debug mode.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/operator.h"

namespace hierarchos {

class Interpreter {
 public:
  // float64: results are kept in double precision; otherwise each is rounded to its dtype.
  explicit Interpreter(const Graph& graph, bool float64 = true) : graph_(graph), float64_(float64) {}

  // Parameters, states and inputs by name. In float64 mode values need not be representable in their dtype.
  void set(const std::string& name, RefTensor value);
  void set(const std::string& name, const HostTensor& value);
  // Runs the root once. States advance. Throws UserError for a leaf without a value (states start by their reset rule).
  void run();
  const RefTensor& output(const std::string& name) const;
  const RefTensor& value(const std::string& leaf) const;  // a state after the run
  // The value of any root node's result after run(), for tests.
  const RefTensor& value(Value v) const;

 private:
  std::vector<RefTensor> run_function(const Function& function, const std::vector<const RefTensor*>& arguments,
                                      std::vector<RefTensor>* keep);
  const Graph& graph_;
  bool float64_;
  std::map<std::string, RefTensor> leaves_;
  std::map<std::string, RefTensor> outputs_;
  std::vector<RefTensor> root_values_;
};

}  // namespace hierarchos
