// Sums rows into a table: the gradient of gather. Fixed order, no atomics.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// accumulator' = accumulator with accumulator'[ids[t]] += rows[t] for t in `order` (positions sorted by id, stable).
// accumulator [V, ...row] fp32 is updated in place; rows [T, ...row]; ids, order [T] I32; ids outside [0, V), and the id
// attr padding_idx (-1 none), are skipped. Node: inputs accumulator, rows, ids, order; result updates input 0.
Value scatter_add_rows(Value accumulator, Value rows, Value ids, Value order, int64_t padding_idx = -1);
const OpDef& scatter_add_rows_def();

}  // namespace hierarchos::ops
