// Philox4x32-10 random numbers (Salmon et al. 2011).
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// [T, N] fp32 in [0, 1), multiples of 2⁻²⁴. The stream is a stable name (key: FNV-1a of `stream` xor seed), the counter
// is (step, token index, element / 4), so recomputation, packing and device count change nothing.
// step: rank-0 I32; tokens [T] I32 (global token index). Node: inputs step, tokens; attrs stream (key as int64), columns.
// Element e of token t: word e % 4 of philox(key, {step, token, e / 4, 0}), its top 24 bits.
Value random_uniform(Value step, Value tokens, int64_t columns, const std::string& stream, uint64_t seed);
const OpDef& random_uniform_def();

}  // namespace hierarchos::ops
