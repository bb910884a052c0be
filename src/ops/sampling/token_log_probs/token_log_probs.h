// How likely a token was, and which were likeliest.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

struct TokenLogProbs {
  Value ids;     // [R, 1 + count] I32: the given id, then the likeliest, best first, the lower index first on a tie
  Value values;  // [R, 1 + count] fp32: their log-probabilities
};

// logits [R, V] fp32, ids [R] I32. 0 ≤ count ≤ V. The value of an id outside [0, V) is -inf.
TokenLogProbs token_log_probs(Value logits, Value ids, int64_t count);
const OpDef& token_log_probs_def();

}  // namespace hierarchos::ops
