// What settings do to scores before a token is drawn: penalties of tokens that were there before, and single edits.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// Columns of `rules`.
enum LogitRule : int64_t {
  kRepetitionPenalty,  // Keskar et al. 2019: divides positive, multiplies negative scores of tokens seen; 1: off
  kPresencePenalty,    // subtracted once from tokens that were generated; 0: off
  kFrequencyPenalty,   // subtracted as often as they were; 0: off
  kForce,              // not 0: all scores are -inf but those that an edit sets
  kRemoveInvalid,      // not 0: NaN becomes 0, infinities the largest numbers of fp32
  kLogitRules
};

// What an edit does to the score of its token. Edits of one kind in a row name distinct tokens.
enum LogitEdit : int32_t {
  kAdd,      // adds its value, before the penalties
  kBan,      // -inf, after them
  kSet,      // its value
  kStretch,  // then adds |score|·value to a finite score
  kLateBan,  // -inf, last
};

// logits [R, V] fp32; rules [R, kLogitRules] fp32; counts [S, V] I32 as count_tokens() keeps them; rows [R] I32, the
// row of counts that belongs to each row of logits (outside [0, S): nothing was seen); edits [R, E]: tokens I32
// (outside [0, V): no edit), kinds I32, values fp32. → [R, V] fp32. Order: kAdd, penalties (repetition, then frequency
// and presence), kForce, kBan and kSet, kRemoveInvalid, kStretch, kLateBan.
Value process_logits(Value logits, Value rules, Value counts, Value rows, Value edit_tokens, Value edit_kinds,
                     Value edit_values);
const OpDef& process_logits_def();

}  // namespace hierarchos::ops
