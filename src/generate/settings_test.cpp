#include "generate/settings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace hierarchos::generate {
namespace {

using Ids = std::vector<int32_t>;

std::vector<int> banned(const GenerationSettings& s, const Ids& history, int64_t prompt, int64_t max_length,
                        size_t vocab = 6) {
  std::vector<double> scores(vocab, 1.0);
  process_scores(s, history, prompt, max_length, scores);
  std::vector<int> ids;
  for (size_t i = 0; i < vocab; ++i)
    if (std::isinf(scores[i])) ids.push_back(static_cast<int>(i));
  return ids;
}

TEST(GenerationSettings, EndTokenWaitsForTheLeastLength) {
  GenerationSettings s;
  s.eos_token_ids = {2, 4};
  s.min_new_tokens = 2;
  EXPECT_EQ(banned(s, {1, 1, 1}, 2, 9), (std::vector<int>{2, 4}));
  EXPECT_EQ(banned(s, {1, 1, 1, 1}, 2, 9), (std::vector<int>{}));
}

TEST(GenerationSettings, Ngrams) {
  GenerationSettings s;
  s.no_repeat_ngram_size = 2;
  EXPECT_EQ(banned(s, {3, 1, 3, 5, 3}, 5, 9), (std::vector<int>{1, 5}));
}

TEST(GenerationSettings, BadWords) {
  GenerationSettings s;
  s.eos_token_ids = {2};
  s.bad_words_ids = {{2}, {4}, {1, 5}, {0, 0, 3}};
  EXPECT_EQ(banned(s, {0, 1}, 2, 9), (std::vector<int>{4, 5}));  // a word that is the end token is not bad
  EXPECT_EQ(banned(s, {0, 0}, 2, 9), (std::vector<int>{4}));     // longer than the history, as in the reference
  EXPECT_EQ(banned(s, {1, 0, 0}, 3, 9), (std::vector<int>{3, 4}));
}

TEST(GenerationSettings, ForcedAndSuppressed) {
  GenerationSettings s;
  s.forced_eos_token_ids = {2};
  s.begin_suppress_tokens = {5};
  EXPECT_EQ(banned(s, {0, 1}, 2, 4), (std::vector<int>{5}));
  EXPECT_EQ(banned(s, {0, 1, 1}, 2, 4), (std::vector<int>{0, 1, 3, 4, 5}));
}

TEST(GenerationSettings, RepetitionPenalty) {
  GenerationSettings s;
  s.repetition_penalty = 2;
  std::vector<double> scores = {4, -4, 3};
  process_scores(s, Ids{0, 1, 0}, 3, 9, scores);
  EXPECT_EQ(scores, (std::vector<double>{2, -8, 3}));
}

TEST(GenerationSettings, ReadsFilesAndRefusesWhatItCannotDo) {
  const nlohmann::json config = {{"eos_token_id", 7}};
  EXPECT_EQ(read_generation_settings(nullptr, config).eos_token_ids, (Ids{7}));
  const GenerationSettings s = read_generation_settings({{"eos_token_id", {1, 2}},
                                                         {"early_stopping", "never"},
                                                         {"length_penalty", 2},
                                                         {"pad_token_id", -1},
                                                         {"temperature", 0.6}},
                                                        config);
  EXPECT_EQ(s.eos_token_ids, (Ids{1, 2}));
  EXPECT_EQ(s.early_stopping, EarlyStopping::Never);
  EXPECT_FALSE(s.pad_token_id);
  EXPECT_THROW(read_generation_settings({{"sequence_bias", {{1, 2}}}}, config), UnsupportedError);
  EXPECT_THROW(read_generation_settings({{"eos_token_id", "x"}}, config), DataError);
}

}  // namespace
}  // namespace hierarchos::generate
