// Reverse-mode differentiation of a graph.
#pragma once

#include "graph/vjp.h"

namespace hierarchos {

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
