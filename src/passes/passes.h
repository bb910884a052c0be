// Rewrites of a graph's functions. Each keeps results and meaning. (Precision is applied as nodes are emitted:
// Graph::set_compute_type.)
#pragma once

#include "graph/graph.h"

namespace hierarchos {

// Functions reachable from the root, callees before callers.
std::vector<FunctionId> reachable(const Graph& graph);
// Values of a function that someone reads: a count for each, results included.
std::vector<int> read_counts(const Graph& graph, const Function& function);

// Values whose memory an operator takes over (directly or through a view), or may (operands of control nodes are not
// counted).
std::vector<bool> values_taken_over(const Function& function);

// Removes nodes whose results nobody reads, results of bodies that no caller reads, arguments that no body reads.
void eliminate_dead_code(Graph& graph);
// The same node twice in one function becomes one. Never crosses a call.
void eliminate_common_subexpressions(Graph& graph);
// Folds residuals, activations, gate × up and norm scales into products (ops/matmul).
void fuse_matmul(Graph& graph);
// Joins neighbouring pointwise nodes of one shape into one expression.
void fuse_pointwise(Graph& graph);
// Orders nodes by depth, so that independent ones stand together and need few barriers.
void schedule(Graph& graph);

// All of the above, in order.
void optimize(Graph& graph);

}  // namespace hierarchos
