// Draws a token of each row: the warpers of transformers (generation/logits_process.py, generation/utils.py:_sample),
// in its order, and the draw.
#pragma once

#include "graph/graph.h"

namespace hierarchos::ops {

// Columns of `settings`. A value that is off changes nothing, so rows of any settings share a program.
enum SampleSetting : int64_t {
  kTemperature,  // > 0; 0: the largest score, the lowest index on a tie
  kTopK,         // tokens of the k largest scores, with all that equal the last; 0: off
  kTopP,         // the fewest likeliest whose probabilities reach p, of equal ones the highest indices; 1: off
  kMinP,         // tokens of at least min_p times the largest probability; 0: off
  kTypicalP,     // Meister et al. 2022: nearest to the entropy until their probabilities reach it; 1: off
  kEpsilon,      // Hewitt et al. 2022: tokens of at least this probability, and the likeliest; 0: off
  kEta,          // the same: at least min(eta, √eta·exp(-entropy)); 0: off
  kSampleSettings
};

struct SampleResult {
  Value ids;    // [R] I32
  Value facts;  // [R, 2] fp32: log-probability of the id in what it was drawn from, number of tokens that were left
};

// scores [R, V] fp32, settings [R, kSampleSettings] fp32, keys [R, 2] I32 (low and high word of the stream's key),
// steps [R] I32. Each filter sees the distribution that the one before left, renormalised. The token is the first one,
// in order of index, at which the sum of probabilities exceeds u = b / 2³², b being the first word of philox(key,
// {step, 0, 0}): what a row gets depends on nothing but that row. A NaN is never drawn; a row without numbers above
// -inf gives id 0 and facts (-inf, 0).
SampleResult sample(Value scores, Value settings, Value keys, Value steps);
const OpDef& sample_def();

}  // namespace hierarchos::ops
