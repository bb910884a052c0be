#include "models/config_reader.h"

#include <cmath>
#include <limits>

namespace hierarchos::models {
namespace {

bool matches(std::string_view pattern, std::string_view key) {
  const bool open_left = pattern.starts_with('*'), open_right = pattern.size() > 1 && pattern.ends_with('*');
  if (open_left) pattern.remove_prefix(1);
  if (open_right) pattern.remove_suffix(1);
  if (open_left && open_right) return key.find(pattern) != std::string_view::npos;
  if (open_left) return key.ends_with(pattern);
  if (open_right) return key.starts_with(pattern);
  return key == pattern;
}

}  // namespace

ConfigReader::ConfigReader(const nlohmann::json& config, std::string where, std::string prefix)
    : config_(config), where_(std::move(where)), prefix_(std::move(prefix)) {
  if (!config.is_object())
    throw DataError("{}: {} is not an object", where_, prefix_.empty() ? "its content" : prefix_);
}

void ConfigReader::fail(std::string_view key, const std::string& what) const {
  throw DataError("{}: {}{} {}", where_, prefix_, key, what);
}

void ConfigReader::unsupported(std::string_view key, const std::string& what) const {
  throw UnsupportedError("{}: {}{} {}", where_, prefix_, key, what);
}

bool ConfigReader::has(std::string_view key) const {
  auto at = config_.find(key);
  return at != config_.end() && !at->is_null();
}

const nlohmann::json* ConfigReader::find(std::string_view key) {
  used_.emplace(key);
  auto at = config_.find(key);
  return at == config_.end() || at->is_null() ? nullptr : &*at;
}

const nlohmann::json* ConfigReader::first(Keys keys, std::string_view* which) {
  const nlohmann::json* found = nullptr;
  for (std::string_view key : keys) {
    const nlohmann::json* value = find(key);
    if (!value) continue;
    if (!found) {
      found = value;
      *which = key;
    } else if (*value != *found) {
      fail(key, fmt::format("is {}, but {}{} is {}: they are two spellings of one setting; keep one", value->dump(),
                            prefix_, *which, found->dump()));
    }
  }
  return found;
}

std::optional<int64_t> ConfigReader::integer(Keys keys) {
  std::string_view key;
  const nlohmann::json* value = first(keys, &key);
  if (!value) return std::nullopt;
  if (value->is_number_integer()) return value->get<int64_t>();
  if (value->is_number_float()) {  // "4096.0" is written by some tools
    const double d = value->get<double>();
    if (d == std::floor(d) && std::abs(d) < 9e15) return static_cast<int64_t>(d);
  }
  fail(key, fmt::format("must be an integer, not {}", value->dump()));
}

std::optional<double> ConfigReader::number(Keys keys) {
  std::string_view key;
  const nlohmann::json* value = first(keys, &key);
  if (!value) return std::nullopt;
  if (!value->is_number()) fail(key, fmt::format("must be a number, not {}", value->dump()));
  const double number = value->get<double>();
  if (!std::isfinite(number)) fail(key, "must be finite");
  return number;
}

std::optional<bool> ConfigReader::flag(Keys keys) {
  std::string_view key;
  const nlohmann::json* value = first(keys, &key);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail(key, fmt::format("must be true or false, not {}", value->dump()));
}

std::optional<std::string> ConfigReader::text(Keys keys) {
  std::string_view key;
  const nlohmann::json* value = first(keys, &key);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  fail(key, fmt::format("must be a string, not {}", value->dump()));
}

std::optional<std::vector<double>> ConfigReader::numbers(Keys keys) {
  std::string_view key;
  const nlohmann::json* value = first(keys, &key);
  if (!value) return std::nullopt;
  std::vector<double> result;
  if (!value->is_array()) fail(key, fmt::format("must be a list of numbers, not {}", value->dump()));
  for (const nlohmann::json& element : *value) {
    if (!element.is_number()) fail(key, fmt::format("must be a list of numbers, but holds {}", element.dump()));
    result.push_back(element.get<double>());
  }
  return result;
}

std::optional<int64_t> ConfigReader::integer_or_null(std::string_view key, int64_t fallback) {
  return config_.contains(key) ? integer({key}) : fallback;
}

std::optional<double> ConfigReader::number_or_null(std::string_view key, double fallback) {
  return config_.contains(key) ? number({key}) : fallback;
}

int64_t ConfigReader::size(Keys keys, std::optional<int64_t> fallback, int64_t most) {
  const std::string_view name = *keys.begin();
  std::optional<int64_t> value = integer(keys);
  if (!value) value = fallback;
  if (!value) fail(name, "is missing");
  if (*value < 1) fail(name, fmt::format("must be at least 1, not {}", *value));
  if (*value > most) fail(name, fmt::format("is {}; at most {} are honoured", *value, most));
  return *value;
}

void ConfigReader::only(std::string_view key, const nlohmann::json& value, std::string_view advice) {
  const nlohmann::json* found = find(key);
  if (found && *found != value)
    unsupported(key, fmt::format("is {}; only {} is honoured: {}", found->dump(), value.dump(), advice));
}

void ConfigReader::harmless(std::initializer_list<std::string_view> patterns) {
  for (const auto& [key, value] : config_.items())
    for (std::string_view pattern : patterns)
      if (matches(pattern, key)) used_.insert(key);
}

void ConfigReader::harmless_everywhere() {
  // What the file is.
  harmless({"model_type", "transformers_version", "_name_or_path", "name_or_path", "torch_dtype", "dtype",
            "architectures", "tokenizer_class", "_commit_hash", "transformers.js_config", "unsloth_version",
            "unsloth_fixed", "model_max_length", "max_sequence_length", "max_seq_len"});
  // How it runs, trains or reports; not what it computes in evaluation.
  harmless({"use_cache",
            "output_attentions",
            "output_hidden_states",
            "output_scores",
            "output_past",
            "return_dict",
            "return_dict_in_generate",
            "torchscript",
            "use_bfloat16",
            "initializer_range",
            "attention_dropout",
            "hidden_dropout",
            "activation_dropout",
            "embedding_dropout",
            "attn_dropout",
            "ffn_dropout",
            "mlp_dropout",
            "resid_dropout",
            "residual_dropout",
            "attn_pdrop",
            "embd_pdrop",
            "resid_pdrop",
            "dropout",
            "gradient_checkpointing",
            "chunk_size_feed_forward",
            "attn_implementation",
            "_attn_implementation*",
            "_flash_attn_2_enabled",
            "use_flash_attention*",
            "cache_implementation"});
  // Heads other than the language model's.
  harmless({"id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params",
            "summary_*", "classifier_dropout"});
  // Token ids and settings of generation (generate/ reads them).
  harmless({"*_token_id",
            "max_length",
            "min_length",
            "max_new_tokens",
            "do_sample",
            "early_stopping",
            "num_beams",
            "num_beam_groups",
            "diversity_penalty",
            "temperature",
            "top_k",
            "top_p",
            "typical_p",
            "repetition_penalty",
            "length_penalty",
            "no_repeat_ngram_size",
            "encoder_no_repeat_ngram_size",
            "bad_words_ids",
            "num_return_sequences",
            "remove_invalid_values",
            "exponential_decay_length_penalty",
            "suppress_tokens",
            "begin_suppress_tokens",
            "prefix"});
  only("is_encoder_decoder", false, "this family is a decoder alone");
  only("add_cross_attention", false, "use the encoder-decoder family that the weights belong to");
  only("tie_encoder_decoder", false, "this family is a decoder alone");
  harmless({"is_decoder"});  // every family so far is one
  only("pruned_heads", nlohmann::json::object(), "save the model after pruning, with its new head counts");
  harmless({"cross_attention_hidden_size"});
  if (has("quantization_config"))
    unsupported("quantization_config",
                "says that the weights were quantised by another tool, which is not read; use the unquantised weights "
                "or a GGUF file");
  // The package's own Python code, which the reference does not run either where it knows the model_type.
  harmless({"auto_map"});
}

void ConfigReader::finish() const {
  for (const auto& [key, value] : config_.items()) {
    if (value.is_null() || used_.count(key)) continue;
    unsupported(key,
                fmt::format("(= {}) is not implemented and could change what is computed; remove it if it does not",
                            value.dump().substr(0, 80)));
  }
}

}  // namespace hierarchos::models
