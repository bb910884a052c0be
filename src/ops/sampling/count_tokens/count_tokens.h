// Keeps account of the tokens that each sequence has, for penalties.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// Kinds of a token; kRestart may be added to the first two: the row is cleared before anything is counted.
enum TokenKind : int32_t { kUncounted = 0, kPromptToken = 1, kNewToken = 2, kRestart = 4 };

// counts [S, V] I32, updated in place: an element is 2 · how often the token was generated, plus 1 if it is in the
// prompt. rows, ids, kinds [T] I32: the tokens of a call; rows outside [0, S) and ids outside [0, V) are skipped.
Value count_tokens(Value counts, Value rows, Value ids, Value kinds);
const OpDef& count_tokens_def();

}  // namespace hierarchos::ops
