#include "generate/settings.h"

#include <cmath>
#include <limits>

#include "models/config_reader.h"

namespace hierarchos::generate {
namespace {

constexpr const char* kFile = "generation_config.json";
constexpr int64_t kMostTokens = int64_t{1} << 30;

std::vector<int32_t> ids_from(models::ConfigReader& reader, std::string_view key, const nlohmann::json& value) {
  std::vector<int32_t> ids;
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > std::numeric_limits<int32_t>::max())
      reader.fail(key, "must be a token id or a list of token ids, not " + id.dump());
    ids.push_back(id.get<int32_t>());
  };
  if (value.is_array())
    for (const nlohmann::json& id : value) add(id);
  else
    add(value);
  return ids;
}

std::vector<int32_t> ids_of(models::ConfigReader& reader, std::string_view key) {
  const nlohmann::json* value = reader.find(key);
  return value ? ids_from(reader, key, *value) : std::vector<int32_t>();
}

std::optional<int32_t> id_of(models::ConfigReader& reader, std::string_view key) {
  const std::vector<int32_t> ids = ids_of(reader, key);
  if (ids.size() > 1) reader.fail(key, "must be one token id");
  return ids.empty() ? std::nullopt : std::optional(ids[0]);
}

void read_lists(models::ConfigReader& reader, GenerationSettings& s) {
  if (const nlohmann::json* words = reader.find("bad_words_ids")) {
    if (!words->is_array()) reader.fail("bad_words_ids", "must be a list of lists of token ids");
    for (const nlohmann::json& word : *words) {
      if (!word.is_array() || word.empty()) reader.fail("bad_words_ids", "must be a list of lists of token ids");
      s.bad_words_ids.push_back(ids_from(reader, "bad_words_ids", word));
    }
  }
  if (const nlohmann::json* list = reader.find("sequence_bias")) {
    const char* form = "must be a list of pairs of a list of token ids and a number";
    if (!list->is_array()) reader.fail("sequence_bias", form);
    for (const nlohmann::json& pair : *list) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_array() || pair[0].empty() || !pair[1].is_number())
        reader.fail("sequence_bias", form);
      s.sequence_bias.push_back({ids_from(reader, "sequence_bias", pair[0]), pair[1].get<double>()});
    }
  }
  if (const nlohmann::json* decay = reader.find("exponential_decay_length_penalty")) {
    if (!decay->is_array() || decay->size() != 2 || !(*decay)[0].is_number_integer() || !(*decay)[1].is_number())
      reader.fail("exponential_decay_length_penalty", "must be a pair of a number of tokens and a factor");
    s.exponential_decay_length_penalty = {(*decay)[0].get<int64_t>(), (*decay)[1].get<double>()};
  }
  if (const nlohmann::json* strings = reader.find("stop_strings")) {
    const auto add = [&](const nlohmann::json& text) {
      if (!text.is_string() || text.get<std::string>().empty())
        reader.fail("stop_strings", "must be a string or a list of strings that are not empty");
      s.stop_strings.push_back(text.get<std::string>());
    };
    if (strings->is_array())
      for (const nlohmann::json& text : *strings) add(text);
    else
      add(*strings);
  }
}

void read_search(models::ConfigReader& reader, GenerationSettings& s) {
  s.num_beams = reader.size({"num_beams"}, 1);
  s.num_return_sequences = reader.size({"num_return_sequences"}, 1);
  s.length_penalty = reader.number("length_penalty", 1.0);
  if (const nlohmann::json* early = reader.find("early_stopping")) {
    if (early->is_boolean())
      s.early_stopping = early->get<bool>() ? EarlyStopping::Yes : EarlyStopping::No;
    else if (early->is_string() && early->get<std::string>() == "never")
      s.early_stopping = EarlyStopping::Never;
    else
      reader.fail("early_stopping", "must be true, false or \"never\", not " + early->dump());
  }
  s.do_sample = reader.flag("do_sample", false);
  s.temperature = reader.number("temperature", 1.0);
  s.top_k = reader.integer("top_k", 50);
  s.top_p = reader.number("top_p", 1.0);
  s.min_p = reader.number("min_p", 0.0);
  s.typical_p = reader.number("typical_p", 1.0);
  s.epsilon_cutoff = reader.number("epsilon_cutoff", 0.0);
  s.eta_cutoff = reader.number("eta_cutoff", 0.0);
}

void read_scores(models::ConfigReader& reader, GenerationSettings& s) {
  s.repetition_penalty = reader.number("repetition_penalty", 1.0);
  s.no_repeat_ngram_size = reader.integer("no_repeat_ngram_size", 0);
  s.forced_bos_token_id = id_of(reader, "forced_bos_token_id");
  s.forced_eos_token_ids = ids_of(reader, "forced_eos_token_id");
  s.suppress_tokens = ids_of(reader, "suppress_tokens");
  s.begin_suppress_tokens = ids_of(reader, "begin_suppress_tokens");
  s.remove_invalid_values = reader.flag("remove_invalid_values", false);
  s.renormalize_logits = reader.flag("renormalize_logits", false);
}

void refuse_the_rest(models::ConfigReader& reader) {
  for (const char* key : {"top_h", "watermarking_config", "dola_layers", "constraints", "force_words_ids"})
    if (reader.has(key)) reader.unsupported(key, "is not implemented; remove it");
  reader.only("num_beam_groups", 1, "remove it to use plain beams");
  reader.only("diversity_penalty", 0.0, "remove it to use plain beams");
  reader.only("penalty_alpha", 0.0, "contrastive search is not implemented; remove it");
  reader.only("guidance_scale", 1.0, "remove it");
  reader.only("token_healing", false, "remove it");
  reader.only("encoder_repetition_penalty", 1.0, "remove it");
  reader.only("encoder_no_repeat_ngram_size", 0, "remove it");
  if (const nlohmann::json* cache = reader.find("cache_implementation"); cache && *cache == "quantized")
    reader.unsupported("cache_implementation", "\"quantized\" is not implemented; remove it");
  // What is left: names and versions, what is returned beside the ids, ways to the same ids (caches, compilation,
  // chunks, drafts that are checked), and what only encoder-decoders use.
  reader.harmless({"transformers_version",
                   "_*",
                   "output_*",
                   "return_dict_in_generate",
                   "use_cache",
                   "decoder_start_token_id",
                   "max_cache_len",
                   "cache_config",
                   "compile_config",
                   "disable_compile",
                   "continuous_batching_config",
                   "low_memory",
                   "prefill_chunk_size",
                   "is_assistant",
                   "num_assistant_tokens*",
                   "assistant_*",
                   "target_lookbehind",
                   "speculation_type",
                   "use_mtp",
                   "prompt_lookup_num_tokens",
                   "max_matching_ngram_size",
                   "transformers.js_config",
                   "trust_remote_code",
                   "chat_format",
                   "max_window_size",
                   "user_token_id"});
}

}  // namespace

GenerationSettings read_generation_settings(const nlohmann::json& generation, const nlohmann::json& config) {
  GenerationSettings s;
  const bool own = generation.is_object();
  models::ConfigReader reader(own ? generation : config, own ? kFile : "config.json");
  s.eos_token_ids = ids_of(reader, "eos_token_id");
  s.bos_token_id = id_of(reader, "bos_token_id");
  // -1 stands for none in old files.
  const nlohmann::json* pad = reader.find("pad_token_id");
  if (pad && !(pad->is_number_integer() && pad->get<int64_t>() < 0)) s.pad_token_id = id_of(reader, "pad_token_id");
  if (!own) return s;

  s.max_new_tokens = reader.integer({"max_new_tokens"});
  s.max_length = reader.integer({"max_length"});
  s.min_new_tokens = reader.integer({"min_new_tokens"});
  s.min_length = reader.integer({"min_length"});
  s.max_time = reader.number({"max_time"});
  read_search(reader, s);
  read_scores(reader, s);
  read_lists(reader, s);
  refuse_the_rest(reader);
  reader.finish();
  try {
    check_settings(s);
  } catch (const UnsupportedError& e) {
    throw UnsupportedError("{}: {}", kFile, e.what());
  } catch (const UserError& e) {
    throw DataError("{}: {}", kFile, e.what());
  }
  return s;
}

void check_settings(const GenerationSettings& s) {
  const auto need = [](bool fine, const char* name, const auto& value, const char* what) {
    if (!fine) throw UserError("{} must be {}, not {}", name, what, value);
  };
  const auto share = [&](const char* name, double value) {
    need(value >= 0 && value <= 1, name, value, "between 0 and 1");
  };
  const auto count = [&](const char* name, std::optional<int64_t> value, int64_t least) {
    if (value)
      need(*value >= least && *value <= kMostTokens, name, *value,
           least > 0 ? "between 1 and 2^30" : "between 0 and 2^30");
  };
  count("max_new_tokens", s.max_new_tokens, 1);
  count("min_new_tokens", s.min_new_tokens, 0);
  count("max_length", s.max_length, 0);
  count("min_length", s.min_length, 0);
  if (s.max_time) need(*s.max_time > 0, "max_time", *s.max_time, "a positive number of seconds");
  if (s.max_new_tokens && s.min_new_tokens && *s.min_new_tokens > *s.max_new_tokens)
    throw UserError("min_new_tokens is {}, more than max_new_tokens, {}", *s.min_new_tokens, *s.max_new_tokens);
  need(s.num_beams >= 1 && s.num_beams <= 1024, "num_beams", s.num_beams, "between 1 and 1024");
  need(std::isfinite(s.length_penalty), "length_penalty", s.length_penalty, "a number");
  need(s.repetition_penalty > 0 && std::isfinite(s.repetition_penalty), "repetition_penalty", s.repetition_penalty,
       "a positive number");
  need(std::isfinite(s.presence_penalty), "presence_penalty", s.presence_penalty, "a number");
  need(std::isfinite(s.frequency_penalty), "frequency_penalty", s.frequency_penalty, "a number");
  count("no_repeat_ngram_size", s.no_repeat_ngram_size, 0);
  count("top_k", s.top_k, 0);
  for (const auto& word : s.bad_words_ids) need(!word.empty(), "bad_words_ids", "[]", "lists of token ids");
  for (const SequenceBias& b : s.sequence_bias) need(!b.ids.empty(), "sequence_bias", "[]", "lists of token ids");
  if (s.exponential_decay_length_penalty) {
    const auto& [start, factor] = *s.exponential_decay_length_penalty;
    need(factor > 0 && std::isfinite(factor), "exponential_decay_length_penalty", factor,
         "a pair with a positive factor");
    count("exponential_decay_length_penalty", start, 0);
  }
  // Quotients by anything smaller would not be numbers.
  need(s.temperature == 0 || (s.temperature >= 1e-6 && std::isfinite(s.temperature)), "temperature", s.temperature,
       "0 (for the likeliest token) or at least 1e-6");
  share("top_p", s.top_p);
  share("min_p", s.min_p);
  share("typical_p", s.typical_p);
  need(s.typical_p > 0, "typical_p", s.typical_p, "above 0");
  share("epsilon_cutoff", s.epsilon_cutoff);
  share("eta_cutoff", s.eta_cutoff);
  if (s.num_return_sequences != 1)
    throw UnsupportedError(
        "num_return_sequences {} is not implemented; remove it and ask several times, with different seeds",
        s.num_return_sequences);
  if (s.num_beams > 1 && s.do_sample)
    throw UnsupportedError(
        "num_beams {} with do_sample: sampling among beams is not implemented; choose one of the two", s.num_beams);
  if (s.num_beams > 1 && !s.stop_strings.empty())
    throw UnsupportedError("num_beams {} with stop_strings is not implemented; remove one of the two", s.num_beams);
  if (s.num_beams > 1 && s.max_time)
    throw UnsupportedError("num_beams {} with max_time is not implemented; remove one of the two", s.num_beams);
}

int64_t most_new_tokens(const GenerationSettings& s, int64_t prompt_length) {
  if (s.max_new_tokens) return *s.max_new_tokens;
  if (s.max_length) return std::max<int64_t>(*s.max_length - prompt_length, 0);
  return 20;
}

}  // namespace hierarchos::generate
