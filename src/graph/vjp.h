// What an operator's gradient rule sees.
#pragma once

#include "graph/graph.h"

namespace hierarchos {

// The rule emits nodes into the function under construction and returns a gradient for each input; nullopt is absent.
struct VjpContext {
  Graph& graph;
  const Attrs& attrs;
  std::vector<Value> inputs;                // forward operands
  std::vector<Value> outputs;               // forward results
  std::vector<std::optional<Value>> grads;  // with respect to each result; absent: the loss does not reach it
  std::vector<bool> wanted;                 // which inputs' gradients are used; others may be left absent
};

}  // namespace hierarchos
