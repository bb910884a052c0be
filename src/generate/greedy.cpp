#include "generate/greedy.h"

#include <algorithm>

namespace hierarchos::generate {
namespace {

bool needs_scores(const GenerationSettings& s) {
  return s.min_new_tokens > 0 || s.min_length > 0 || s.repetition_penalty != 1 || s.no_repeat_ngram_size > 0 ||
         !s.bad_words_ids.empty() || s.forced_bos_token_id || !s.forced_eos_token_ids.empty() ||
         !s.suppress_tokens.empty() || !s.begin_suppress_tokens.empty();
}

}  // namespace

std::vector<int32_t> greedy(Decoder& decoder, std::span<const int32_t> prompt, const GenerationSettings& settings,
                            const std::function<bool(int32_t)>& on_token) {
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  const auto prompt_length = static_cast<int64_t>(prompt.size());
  const int64_t max_length = prompt_length + settings.max_new_tokens;
  const bool on_host = needs_scores(settings);
  for (int64_t n = 0; n < settings.max_new_tokens; ++n) {
    if (n == 0)
      decoder.prefill(prompt);
    else
      decoder.append(ids.back());
    int32_t next;
    if (on_host) {
      const std::vector<float> logits = decoder.logits();
      std::vector<double> scores(logits.begin(), logits.end());
      process_scores(settings, ids, prompt_length, max_length, scores);
      next = static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    } else {
      next = decoder.argmax()[0];
    }
    ids.push_back(next);
    if (on_token && !on_token(next)) break;
    if (std::count(settings.eos_token_ids.begin(), settings.eos_token_ids.end(), next) > 0) break;
  }
  return ids;
}

}  // namespace hierarchos::generate
