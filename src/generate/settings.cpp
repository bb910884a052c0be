#include "generate/settings.h"

#include <algorithm>
#include <limits>
#include <set>

#include "models/config_reader.h"

namespace hierarchos::generate {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

std::vector<int32_t> ids_of(models::ConfigReader& reader, std::string_view key) {
  const nlohmann::json* value = reader.find(key);
  std::vector<int32_t> ids;
  if (!value) return ids;
  auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > std::numeric_limits<int32_t>::max())
      reader.fail(key, "must be a token id or a list of token ids, not " + value->dump());
    ids.push_back(id.get<int32_t>());
  };
  if (value->is_array())
    for (const nlohmann::json& id : *value) add(id);
  else
    add(*value);
  return ids;
}

std::optional<int32_t> id_of(models::ConfigReader& reader, std::string_view key) {
  const std::vector<int32_t> ids = ids_of(reader, key);
  if (ids.size() > 1) reader.fail(key, "must be one token id");
  return ids.empty() ? std::nullopt : std::optional(ids[0]);
}

void ban(std::span<double> scores, int32_t id) {
  if (id >= 0 && static_cast<size_t>(id) < scores.size()) scores[static_cast<size_t>(id)] = kNever;
}

void force(std::span<double> scores, std::span<const int32_t> ids) {
  std::fill(scores.begin(), scores.end(), kNever);
  for (int32_t id : ids)
    if (static_cast<size_t>(id) < scores.size()) scores[static_cast<size_t>(id)] = 0;
}

bool ends_with(std::span<const int32_t> history, std::span<const int32_t> tail) {
  return history.size() >= tail.size() &&
         std::equal(tail.begin(), tail.end(), history.end() - static_cast<std::ptrdiff_t>(tail.size()));
}

}  // namespace

GenerationSettings read_generation_settings(const nlohmann::json& generation, const nlohmann::json& config) {
  GenerationSettings s;
  const bool own = generation.is_object();
  models::ConfigReader reader(own ? generation : config, own ? "generation_config.json" : "config.json");
  s.eos_token_ids = ids_of(reader, "eos_token_id");
  s.bos_token_id = id_of(reader, "bos_token_id");
  // -1 stands for none in old files.
  const nlohmann::json* pad = reader.find("pad_token_id");
  if (pad && !(pad->is_number_integer() && pad->get<int64_t>() < 0)) s.pad_token_id = id_of(reader, "pad_token_id");
  if (!own) return s;

  s.max_new_tokens = reader.integer("max_new_tokens", 20);
  s.min_new_tokens = reader.integer("min_new_tokens", 0);
  s.min_length = reader.integer("min_length", 0);
  s.num_beams = reader.size({"num_beams"}, 1);
  s.length_penalty = reader.number("length_penalty", 1.0);
  if (const nlohmann::json* early = reader.find("early_stopping")) {
    if (early->is_boolean())
      s.early_stopping = early->get<bool>() ? EarlyStopping::Yes : EarlyStopping::No;
    else if (early->is_string() && early->get<std::string>() == "never")
      s.early_stopping = EarlyStopping::Never;
    else
      reader.fail("early_stopping", "must be true, false or \"never\", not " + early->dump());
  }
  s.repetition_penalty = reader.number("repetition_penalty", 1.0);
  if (!(s.repetition_penalty > 0)) reader.fail("repetition_penalty", "must be positive");
  s.no_repeat_ngram_size = reader.integer("no_repeat_ngram_size", 0);
  if (const nlohmann::json* words = reader.find("bad_words_ids")) {
    if (!words->is_array()) reader.fail("bad_words_ids", "must be a list of lists of token ids");
    for (const nlohmann::json& word : *words) {
      if (!word.is_array() || word.empty()) reader.fail("bad_words_ids", "must be a list of lists of token ids");
      std::vector<int32_t> ids;
      for (const nlohmann::json& id : word) {
        if (!id.is_number_integer()) reader.fail("bad_words_ids", "must be a list of lists of token ids");
        ids.push_back(id.get<int32_t>());
      }
      s.bad_words_ids.push_back(std::move(ids));
    }
  }
  s.forced_bos_token_id = id_of(reader, "forced_bos_token_id");
  s.forced_eos_token_ids = ids_of(reader, "forced_eos_token_id");
  s.suppress_tokens = ids_of(reader, "suppress_tokens");
  s.begin_suppress_tokens = ids_of(reader, "begin_suppress_tokens");

  // Sampling is chosen by the caller; these only matter to it.
  reader.harmless(
      {"do_sample", "temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h"});
  reader.harmless({"transformers_version",
                   "_*",
                   "output_*",
                   "return_dict_in_generate",
                   "use_cache",
                   "max_length",
                   "max_time",
                   "decoder_start_token_id",
                   "cache_implementation",
                   "cache_config",
                   "num_return_sequences",
                   "renormalize_logits",
                   "disable_compile",
                   "low_memory",
                   "prefill_chunk_size",
                   "encoder_no_repeat_ngram_size",
                   "encoder_repetition_penalty",
                   "is_assistant",
                   "num_assistant_tokens*",
                   "assistant_*",
                   "prompt_lookup_num_tokens",
                   "max_matching_ngram_size",
                   "transformers.js_config",
                   "trust_remote_code",
                   "chat_format",
                   "remove_invalid_values"});
  reader.only("num_beam_groups", 1, "remove it to use plain beams");
  reader.only("diversity_penalty", 0.0, "remove it to use plain beams");
  reader.only("penalty_alpha", 0.0, "contrastive search is not implemented");
  reader.only("guidance_scale", 1.0, "remove it");
  reader.finish();
  return s;
}

void process_scores(const GenerationSettings& s, std::span<const int32_t> history, int64_t prompt_length,
                    int64_t max_length, std::span<double> scores) {
  // In the reference's order.
  const auto length = static_cast<int64_t>(history.size());
  if (s.repetition_penalty != 1.0) {
    for (int32_t id : std::set<int32_t>(history.begin(), history.end())) {
      if (id < 0 || static_cast<size_t>(id) >= scores.size()) continue;
      double& score = scores[static_cast<size_t>(id)];
      score = score < 0 ? score * s.repetition_penalty : score / s.repetition_penalty;
    }
  }
  if (const int64_t n = s.no_repeat_ngram_size; n > 0 && length + 1 >= n) {
    const auto tail = history.last(static_cast<size_t>(n - 1));
    for (int64_t i = 0; i + n <= length; ++i)
      if (std::equal(tail.begin(), tail.end(), history.begin() + i))
        ban(scores, history[static_cast<size_t>(i + n - 1)]);
  }
  for (const std::vector<int32_t>& word : s.bad_words_ids) {
    const bool is_eos = word.size() == 1 && std::count(s.eos_token_ids.begin(), s.eos_token_ids.end(), word[0]) > 0;
    if (is_eos || (word.size() > 1 && static_cast<int64_t>(word.size()) > length)) continue;
    if (ends_with(history, std::span(word).first(word.size() - 1))) ban(scores, word.back());
  }
  if (length < s.min_length || length - prompt_length < s.min_new_tokens)
    for (int32_t id : s.eos_token_ids) ban(scores, id);
  if (s.forced_bos_token_id && length == 1) force(scores, {&*s.forced_bos_token_id, 1});
  if (!s.forced_eos_token_ids.empty() && length == max_length - 1) force(scores, s.forced_eos_token_ids);
  for (int32_t id : s.suppress_tokens) ban(scores, id);
  const int64_t begin = prompt_length > 1 || !s.forced_bos_token_id ? prompt_length : prompt_length + 1;
  if (length == begin)
    for (int32_t id : s.begin_suppress_tokens) ban(scores, id);
}

}  // namespace hierarchos::generate
