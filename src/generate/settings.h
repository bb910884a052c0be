// Settings of generation_config.json, and what they do to scores (transformers: generation/logits_process.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hierarchos::generate {

enum class EarlyStopping : uint8_t { No, Yes, Never };

struct GenerationSettings {
  int64_t max_new_tokens = 20, min_new_tokens = 0, min_length = 0;
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> bos_token_id, pad_token_id;

  int64_t num_beams = 1;
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::No;

  double repetition_penalty = 1;
  int64_t no_repeat_ngram_size = 0;
  std::vector<std::vector<int32_t>> bad_words_ids;
  std::optional<int32_t> forced_bos_token_id;
  std::vector<int32_t> forced_eos_token_ids, suppress_tokens, begin_suppress_tokens;
};

// Reads a package's generation_config.json, or, where it has none (`generation` null), the token ids of its
// config.json. Settings that would change the chosen ids and are not honoured are an UnsupportedError naming the key.
GenerationSettings read_generation_settings(const nlohmann::json& generation, const nlohmann::json& config);

// Applies the settings to one row of scores: logits for greedy search, log-probabilities for beams.
// history: prompt and what was generated; max_length: prompt and new tokens at most.
void process_scores(const GenerationSettings& settings, std::span<const int32_t> history, int64_t prompt_length,
                    int64_t max_length, std::span<double> scores);

}  // namespace hierarchos::generate
