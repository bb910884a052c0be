// Writes rows at given places: cache append, output rings.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// buffer' = buffer with buffer'[slots[t]] = rows[t]; slots outside [0, S) are skipped. Slots are distinct.
// buffer [S, ...row] is updated in place (may have another floating dtype than rows: converted, to nearest even);
// rows [T, ...row], slots [T] I32. rows may be strided in their first axis. No gradient.
Value scatter_rows(Value buffer, Value rows, Value slots);
const OpDef& scatter_rows_def();

}  // namespace hierarchos::ops
