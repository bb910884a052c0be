// What generation_config.json says, in transformers' names and with its defaults (generation/configuration_utils.py).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hierarchos::generate {

enum class EarlyStopping : uint8_t { No, Yes, Never };

struct SequenceBias {
  std::vector<int32_t> ids;  // the last one's score changes where the others come right before
  double bias = 0;
};

struct GenerationSettings {
  // Length, in tokens. What is not given: 20 new tokens.
  std::optional<int64_t> max_new_tokens, max_length;  // the first counts where both are given
  std::optional<int64_t> min_new_tokens, min_length;  // so here
  std::optional<double> max_time;                     // seconds
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> bos_token_id, pad_token_id;
  std::vector<std::string> stop_strings;

  int64_t num_beams = 1, num_return_sequences = 1;
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::No;

  // Scores, before a token is chosen. Presence and frequency penalties are those of OpenAI's API.
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  int64_t no_repeat_ngram_size = 0;
  std::vector<std::vector<int32_t>> bad_words_ids;
  std::vector<SequenceBias> sequence_bias;
  std::optional<int32_t> forced_bos_token_id;
  std::vector<int32_t> forced_eos_token_ids, suppress_tokens, begin_suppress_tokens;
  struct LengthDecay {
    int64_t start = 0;  // new tokens
    double factor = 1;
  };
  std::optional<LengthDecay> exponential_decay_length_penalty;
  bool remove_invalid_values = false, renormalize_logits = false;

  // Sampling; without it the likeliest token is taken.
  bool do_sample = false;
  double temperature = 1;
  int64_t top_k = 50;  // 0: off
  double top_p = 1, min_p = 0, typical_p = 1, epsilon_cutoff = 0, eta_cutoff = 0;
  uint64_t seed = 0;  // the same seed, prompt and settings give the same tokens, whatever else is in the batch
};

// Reads a package's generation_config.json, or, where it has none (`generation` null), the token ids of its
// config.json. A setting that would change the chosen ids and is not honoured is an UnsupportedError naming the key, a
// value that means nothing a DataError.
GenerationSettings read_generation_settings(const nlohmann::json& generation, const nlohmann::json& config);

// Throws UserError naming the first setting whose value means nothing, or that does not go with another.
void check_settings(const GenerationSettings& settings);

// The most tokens that may follow a prompt of that length.
int64_t most_new_tokens(const GenerationSettings& settings, int64_t prompt_length);

}  // namespace hierarchos::generate
