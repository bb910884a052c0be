// Options that say how to choose tokens, over what the package says.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "generate/settings.h"
#include "runner.h"

namespace hierarchos::cli {

struct SettingsOptions {
  std::optional<int64_t> max_new_tokens, min_new_tokens, top_k, no_repeat_ngram_size, num_beams;
  std::optional<double> temperature, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff, repetition_penalty,
      presence_penalty, frequency_penalty, length_penalty, max_time;
  std::optional<uint64_t> seed;
  std::string early_stopping;
  std::vector<std::string> stop, bad_words;
  bool greedy = false, ignore_eos = false;
};
void add_settings_options(CLI::App& command, SettingsOptions& options, bool beams);

// The package's generation_config.json with the options over it. Any option about sampling turns sampling on; a seed
// that is not given is drawn. `default_new_tokens`: where neither says.
generate::GenerationSettings make_settings(const SettingsOptions& options, const Runner& runner,
                                           int64_t default_new_tokens);

}  // namespace hierarchos::cli
