#include "settings_options.h"

#include <random>

namespace hierarchos::cli {

void add_settings_options(CLI::App& command, SettingsOptions& o, bool beams) {
  const std::string length = "Length", choice = "Choice of tokens", penalties = "Penalties";
  const auto option = [&](const std::string& group, const char* name, auto& value, const char* what, const char* type) {
    return command.add_option(name, value, what)->group(group)->type_name(type);
  };
  option(length, "-n,--max-new-tokens", o.max_new_tokens, "stop after this many", "N");
  option(length, "--min-new-tokens", o.min_new_tokens, "do not end before this many", "N");
  option(length, "--max-time", o.max_time, "stop after so many seconds", "SECONDS");
  option(length, "--stop", o.stop, "stop where this text comes; may be given several times", "TEXT")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", o.ignore_eos, "do not stop at the model's end tokens")->group(length);

  command.add_flag("--greedy", o.greedy, "always the likeliest token, whatever the package says")->group(choice);
  option(choice, "-t,--temperature", o.temperature, "above 1: more even, below: more certain; 0: greedy", "X");
  option(choice, "--top-k", o.top_k, "of the k likeliest tokens; 0: of all", "K");
  option(choice, "--top-p", o.top_p, "of the likeliest tokens that have this probability together", "P");
  option(choice, "--min-p", o.min_p, "of tokens that have this share of the likeliest one's probability", "P");
  option(choice, "--typical-p", o.typical_p, "of the most typical tokens that have this probability together", "P");
  option(choice, "--epsilon-cutoff", o.epsilon_cutoff, "of tokens of at least this probability", "P");
  option(choice, "--eta-cutoff", o.eta_cutoff, "the same, adapted to the entropy", "P");
  option(choice, "--seed", o.seed, "the same seed, prompt and options give the same text", "N");

  option(penalties, "--repetition-penalty", o.repetition_penalty,
         "makes tokens that were there before less likely; 1: off", "X");
  option(penalties, "--presence-penalty", o.presence_penalty, "subtracted from scores of tokens generated before", "X");
  option(penalties, "--frequency-penalty", o.frequency_penalty, "subtracted as often as they were generated", "X");
  option(penalties, "--no-repeat-ngram-size", o.no_repeat_ngram_size, "no run of so many tokens comes twice; 0: off",
         "N");
  option(penalties, "--bad-words", o.bad_words, "a text that must not come; may be given several times", "TEXT")
      ->allow_extra_args(false);
  if (!beams) return;
  const std::string search = "Beam search";
  option(search, "--num-beams", o.num_beams, "sequences that are followed side by side; 1: no beam search", "N");
  option(search, "--length-penalty", o.length_penalty, "above 0 favours long texts, below short ones", "X");
  option(search, "--early-stopping", o.early_stopping, "true, false or never, as transformers has it", "WHEN")
      ->check(CLI::IsMember({"true", "false", "never"}));
}

namespace {

template <typename To, typename From>
void take(To& to, const std::optional<From>& from) {
  if (from) to = *from;
}

bool shapes_sampling(const SettingsOptions& o) {
  return o.temperature || o.top_k || o.top_p || o.min_p || o.typical_p || o.epsilon_cutoff || o.eta_cutoff;
}

}  // namespace

generate::GenerationSettings make_settings(const SettingsOptions& o, const Runner& runner, int64_t default_new_tokens) {
  using generate::EarlyStopping;
  generate::GenerationSettings s =
      generate::read_generation_settings(runner.model.generation_config, runner.model.config);
  if (!s.max_new_tokens && !s.max_length) s.max_new_tokens = default_new_tokens;
  take(s.max_new_tokens, o.max_new_tokens);
  take(s.min_new_tokens, o.min_new_tokens);
  take(s.max_time, o.max_time);
  if (o.ignore_eos) s.eos_token_ids.clear();
  s.stop_strings.insert(s.stop_strings.end(), o.stop.begin(), o.stop.end());

  if (o.greedy && shapes_sampling(o))
    throw UserError("--greedy does not go with options about sampling: leave out one of them");
  if (shapes_sampling(o) || o.seed) s.do_sample = true;
  if (o.greedy || (o.num_beams && *o.num_beams > 1 && !shapes_sampling(o))) s.do_sample = false;
  take(s.temperature, o.temperature);
  take(s.top_k, o.top_k);
  take(s.top_p, o.top_p);
  take(s.min_p, o.min_p);
  take(s.typical_p, o.typical_p);
  take(s.epsilon_cutoff, o.epsilon_cutoff);
  take(s.eta_cutoff, o.eta_cutoff);
  if (s.temperature == 0) s.do_sample = false;
  s.seed = o.seed ? *o.seed : std::random_device()();

  take(s.repetition_penalty, o.repetition_penalty);
  take(s.presence_penalty, o.presence_penalty);
  take(s.frequency_penalty, o.frequency_penalty);
  take(s.no_repeat_ngram_size, o.no_repeat_ngram_size);
  for (const std::string& word : o.bad_words) {
    // As the text begins, and inside it.
    for (const std::string& text : {word, " " + word}) {
      const std::vector<int32_t> ids = runner.tokenizer->encode(text, /*add_special=*/false);
      if (ids.empty()) throw UserError("--bad-words: the text is empty");
      s.bad_words_ids.push_back(ids);
    }
  }
  take(s.num_beams, o.num_beams);
  take(s.length_penalty, o.length_penalty);
  if (!o.early_stopping.empty())
    s.early_stopping = o.early_stopping == "true"    ? EarlyStopping::Yes
                       : o.early_stopping == "false" ? EarlyStopping::No
                                                     : EarlyStopping::Never;
  generate::check_settings(s);
  return s;
}

}  // namespace hierarchos::cli
