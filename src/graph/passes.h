// Rewrites of functions. Each keeps results and meaning.
#pragma once

#include "graph/graph.h"

namespace hierarchos {

// Functions reachable from the root, callees before callers.
std::vector<FunctionId> reachable(const Graph& graph);

// Removes nodes whose results nobody reads, in every reachable function; also results of bodies that no caller reads and
// arguments that no body reads (bodies may become shared again).
void eliminate_dead_code(Graph& graph);
// Same node twice in one function becomes one. Never crosses a call.
void eliminate_common_subexpressions(Graph& graph);

// Compute type of products and attention; fp32-only operators get casts. Run before autodiff. F32: nothing changes.
void apply_precision(Graph& graph, DType compute);

// Folds norm scales, biases, activations, gate × up and residuals into products (ops/matmul).
void fuse_matmul(Graph& graph);
// Joins neighbouring pointwise nodes of one shape into one expression.
void fuse_pointwise(Graph& graph);
// Orders nodes by depth, so that independent ones stand together and need few barriers.
void schedule(Graph& graph);

// All of the above from dead code to schedule, in order.
void optimize(Graph& graph);

}  // namespace hierarchos
