// Reverse-mode differentiation of a graph.
#pragma once

#include "graph/graph.h"

namespace hierarchos {

// What an operator's gradient rule sees. The rule emits nodes into the function under construction.
struct VjpContext {
  Graph& graph;
  const Attrs& attrs;
  std::vector<Value> inputs;                  // forward operands
  std::vector<Value> outputs;                 // forward results
  std::vector<std::optional<Value>> grads;    // with respect to each result; absent: the loss does not reach it
  std::vector<bool> wanted;                   // which inputs' gradients are used; others may be left absent
};

// How much a body's backward computes again. Never changes bits.
enum class SaveSet : uint8_t {
  Auto,  // keep results of products, attention, statistics; recompute pointwise and views
  All,   // keep every value that backward reads
  None,  // keep the body's arguments only: the whole body is computed again
};

// Gradients of the rank-0 `loss` with respect to `wrt` (root values). nullopt: the loss does not reach it.
// Call and scan nodes on the way are replaced by versions that also return what backward needs.
std::vector<std::optional<Value>> gradients(Value loss, std::span<const Value> wrt, SaveSet save = SaveSet::Auto);

}  // namespace hierarchos
