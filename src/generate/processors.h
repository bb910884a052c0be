// What settings do to scores before a token is chosen: transformers' logits processors (generation/logits_process.py),
// in the order of generation/utils.py:_get_logits_processor. The host says which changes a step needs, as a few edits;
// the device applies them beside the penalties, for which it keeps counts (ops/sampling/process_logits), then draws
// (ops/sampling/sample).
#pragma once

#include <array>
#include <span>
#include <vector>

#include "generate/settings.h"
#include "ops/sampling/process_logits/process_logits.h"
#include "ops/sampling/sample/sample.h"

namespace hierarchos::generate {

struct LogitChanges {
  std::array<float, ops::kLogitRules> rules = {1, 0, 0, 0, 0};
  struct Edit {
    int32_t token = 0, kind = 0;
    float value = 0;
  };
  std::vector<Edit> edits;
};

// history: the prompt and what was generated; max_length: of both together at most.
LogitChanges logit_changes(const GenerationSettings& settings, std::span<const int32_t> history, int64_t prompt_length,
                           int64_t max_length);

bool counts_tokens(const GenerationSettings& settings);   // whether penalties need the counts
bool changes_logits(const GenerationSettings& settings);  // whether any step may have changes

// The row of ops::sample's settings; greedy without do_sample.
std::array<float, ops::kSampleSettings> sample_settings(const GenerationSettings& settings);
// The stream's key: of the name "sampling" and the seed.
uint64_t sample_key(uint64_t seed);

// The same changes on the host, for beams: to log-probabilities.
void process_scores(const GenerationSettings& settings, std::span<const int32_t> history, int64_t prompt_length,
                    int64_t max_length, std::span<double> scores);

}  // namespace hierarchos::generate
