#include "generate/settings.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hierarchos::generate {
namespace {

using Ids = std::vector<int32_t>;

GenerationSettings read(const nlohmann::json& generation) {
  return read_generation_settings(generation, {{"eos_token_id", 7}});
}

TEST(GenerationSettings, ReadsFiles) {
  EXPECT_EQ(read(nullptr).eos_token_ids, (Ids{7}));
  const GenerationSettings s = read({{"eos_token_id", {1, 2}},
                                     {"early_stopping", "never"},
                                     {"length_penalty", 2},
                                     {"pad_token_id", -1},
                                     {"do_sample", true},
                                     {"temperature", 0.6},
                                     {"stop_strings", "END"},
                                     {"max_length", 30},
                                     {"sequence_bias", {{{1, 2}, -1.5}}},
                                     {"exponential_decay_length_penalty", {3, 1.5}},
                                     {"bad_words_ids", {{4}, {5, 6}}}});
  EXPECT_EQ(s.eos_token_ids, (Ids{1, 2}));
  EXPECT_EQ(s.early_stopping, EarlyStopping::Never);
  EXPECT_FALSE(s.pad_token_id);
  EXPECT_TRUE(s.do_sample);
  EXPECT_EQ(s.temperature, 0.6);
  EXPECT_EQ(s.top_k, 50);  // the reference's default
  EXPECT_EQ(s.stop_strings, (std::vector<std::string>{"END"}));
  EXPECT_EQ(most_new_tokens(s, 12), 18);
  EXPECT_EQ(s.sequence_bias.at(0).ids, (Ids{1, 2}));
  EXPECT_EQ(s.sequence_bias.at(0).bias, -1.5);
  EXPECT_EQ(s.exponential_decay_length_penalty->factor, 1.5);
  EXPECT_EQ(s.bad_words_ids, (std::vector<Ids>{{4}, {5, 6}}));
}

TEST(GenerationSettings, NewTokensCountMoreThanLength) {
  EXPECT_EQ(most_new_tokens(read(nlohmann::json::object()), 5), 20);
  EXPECT_EQ(most_new_tokens(read({{"max_length", 9}}), 5), 4);
  EXPECT_EQ(most_new_tokens(read({{"max_length", 9}}), 15), 0);
  EXPECT_EQ(most_new_tokens(read({{"max_length", 9}, {"max_new_tokens", 3}}), 5), 3);
}

// The error names the key.
template <typename Error>
void refused(const nlohmann::json& generation, const std::string& key) {
  try {
    read(generation);
    FAIL() << generation.dump() << " was accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
  }
}

TEST(GenerationSettings, RefusesWhatItDoesNotHonour) {
  for (const auto& [key, value] :
       std::initializer_list<std::pair<std::string, nlohmann::json>>{{"num_beam_groups", 2},
                                                                     {"diversity_penalty", 0.5},
                                                                     {"penalty_alpha", 0.6},
                                                                     {"guidance_scale", 1.5},
                                                                     {"top_h", 0.4},
                                                                     {"token_healing", true},
                                                                     {"encoder_repetition_penalty", 1.2},
                                                                     {"encoder_no_repeat_ngram_size", 3},
                                                                     {"watermarking_config", {{"bias", 2}}},
                                                                     {"dola_layers", "low"},
                                                                     {"constraints", {1}},
                                                                     {"force_words_ids", {{1}}},
                                                                     {"cache_implementation", "quantized"},
                                                                     {"num_return_sequences", 2},
                                                                     {"mystery", 1}})
    refused<UnsupportedError>({{key, value}}, key);
  refused<UnsupportedError>({{"num_beams", 2}, {"do_sample", true}}, "num_beams");
  refused<UnsupportedError>({{"num_beams", 2}, {"stop_strings", "x"}}, "stop_strings");
}

TEST(GenerationSettings, RefusesWhatMeansNothing) {
  for (const auto& [key, value] : std::initializer_list<std::pair<std::string, nlohmann::json>>{
           {"eos_token_id", "x"},
           {"eos_token_id", -3},
           {"max_new_tokens", 0},
           {"max_new_tokens", 9223372036854775807},
           {"min_new_tokens", -1},
           {"max_length", -9223372036854775807},
           {"num_beams", 1000000000},
           {"temperature", -1},
           {"temperature", 1e-20},
           {"top_k", -5},
           {"top_p", 1.5},
           {"min_p", -0.1},
           {"typical_p", 0},
           {"epsilon_cutoff", 2},
           {"repetition_penalty", 0},
           {"no_repeat_ngram_size", -1},
           {"bad_words_ids", {{1.5}}},
           {"bad_words_ids", nlohmann::json::array({nlohmann::json::array()})},
           {"sequence_bias", {{1, 2}}},
           {"exponential_decay_length_penalty", {1}},
           {"stop_strings", {""}},
           {"early_stopping", "maybe"},
           {"max_time", 0}})
    refused<DataError>({{key, value}}, key);
}

TEST(GenerationSettings, AcceptsWhatChangesNothing) {
  read({{"_from_model_config", true},
        {"transformers_version", "5.24.0"},
        {"use_cache", false},
        {"cache_implementation", "hybrid"},
        {"num_beam_groups", 1},
        {"guidance_scale", 1.0},
        {"output_scores", true},
        {"num_assistant_tokens", 20},
        {"assistant_confidence_threshold", 0.4},
        {"encoder_no_repeat_ngram_size", 0},
        {"token_healing", false},
        {"top_h", nullptr}});
}

}  // namespace
}  // namespace hierarchos::generate
