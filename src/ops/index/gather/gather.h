// Rows of a table: embeddings.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// y[t] = table[ids[t]]. table [V, ...row] (block storage allowed: decoded to fp32), ids [T] I32 → [T, ...row].
// An id outside [0, V) gives a zero row (hosts check ids before they get here).
// `order` [T] I32 (positions sorted by id, stable) is needed for the gradient only; see nn::sorted_order.
// Node: inputs table, ids, [order]; attr padding_idx (-1 none: that row gets no gradient).
Value gather(Value table, Value ids, std::optional<Value> order = std::nullopt, int64_t padding_idx = -1);
const OpDef& gather_def();

}  // namespace hierarchos::ops
