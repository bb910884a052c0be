#include "generate/processors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/rng.h"

namespace hierarchos::generate {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool ends_with(std::span<const int32_t> history, std::span<const int32_t> tail) {
  return history.size() >= tail.size() && std::ranges::equal(history.last(tail.size()), tail);
}

// Tokens that would complete a run of n tokens that is there already.
std::set<int32_t> repeated_ngrams(std::span<const int32_t> history, int64_t size) {
  std::set<int32_t> banned;
  const auto n = static_cast<size_t>(size);
  if (n == 0 || history.size() < n) return banned;
  const auto tail = history.last(n - 1);
  for (size_t i = 0; i + n <= history.size(); ++i)
    if (std::ranges::equal(tail, history.subspan(i, n - 1))) banned.insert(history[i + n - 1]);
  return banned;
}

class Collector {
 public:
  explicit Collector(LogitChanges& changes) : changes_(changes) {}
  void add(int32_t token, ops::LogitEdit kind, float value = 0) {
    if (seen_.insert({token, kind}).second) changes_.edits.push_back({token, kind, value});
  }

 private:
  LogitChanges& changes_;
  std::set<std::pair<int32_t, int32_t>> seen_;  // edits of a kind name distinct tokens
};

}  // namespace

LogitChanges logit_changes(const GenerationSettings& s, std::span<const int32_t> history, int64_t prompt_length,
                           int64_t max_length) {
  LogitChanges changes;
  Collector edits(changes);
  const auto length = static_cast<int64_t>(history.size()), new_tokens = length - prompt_length;
  const auto is_eos = [&](int32_t id) { return std::ranges::count(s.eos_token_ids, id) > 0; };

  std::map<int32_t, double> biases;
  for (const SequenceBias& b : s.sequence_bias)
    if (ends_with(history, std::span(b.ids).first(b.ids.size() - 1))) biases[b.ids.back()] += b.bias;
  for (const auto& [token, bias] : biases) edits.add(token, ops::kAdd, static_cast<float>(bias));

  changes.rules[ops::kRepetitionPenalty] = static_cast<float>(s.repetition_penalty);
  changes.rules[ops::kPresencePenalty] = static_cast<float>(s.presence_penalty);
  changes.rules[ops::kFrequencyPenalty] = static_cast<float>(s.frequency_penalty);

  for (int32_t token : repeated_ngrams(history, s.no_repeat_ngram_size)) edits.add(token, ops::kBan);
  for (const std::vector<int32_t>& word : s.bad_words_ids) {
    if (word.size() == 1 && is_eos(word[0])) continue;
    if (ends_with(history, std::span(word).first(word.size() - 1))) edits.add(word.back(), ops::kBan);
  }
  const bool too_short = s.min_new_tokens ? new_tokens < *s.min_new_tokens : s.min_length && length < *s.min_length;
  if (too_short)
    for (int32_t id : s.eos_token_ids) edits.add(id, ops::kBan);

  const auto force = [&](std::span<const int32_t> ids) {
    changes.rules[ops::kForce] = 1;
    for (int32_t id : ids) edits.add(id, ops::kSet);
  };
  const bool last = length == max_length - 1;
  if (!s.forced_eos_token_ids.empty() && last)
    force(s.forced_eos_token_ids);
  else if (s.forced_bos_token_id && length == 1)
    force(std::span(&*s.forced_bos_token_id, 1));

  changes.rules[ops::kRemoveInvalid] = s.remove_invalid_values ? 1 : 0;
  if (s.exponential_decay_length_penalty && new_tokens > s.exponential_decay_length_penalty->start) {
    const auto past = static_cast<double>(new_tokens - s.exponential_decay_length_penalty->start);
    const auto stretch = static_cast<float>(std::pow(s.exponential_decay_length_penalty->factor, past) - 1);
    for (int32_t id : s.eos_token_ids) edits.add(id, ops::kStretch, stretch);
  }
  for (int32_t id : s.suppress_tokens) edits.add(id, ops::kLateBan);
  const int64_t begin = prompt_length > 1 || !s.forced_bos_token_id ? prompt_length : prompt_length + 1;
  if (length == begin)
    for (int32_t id : s.begin_suppress_tokens) edits.add(id, ops::kLateBan);
  return changes;
}

bool counts_tokens(const GenerationSettings& s) {
  return s.repetition_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0;
}

bool changes_logits(const GenerationSettings& s) {
  const bool least = s.min_new_tokens ? *s.min_new_tokens > 0 : s.min_length.value_or(0) > 0;
  return counts_tokens(s) || s.no_repeat_ngram_size > 0 || !s.bad_words_ids.empty() || !s.sequence_bias.empty() ||
         least || s.forced_bos_token_id || !s.forced_eos_token_ids.empty() || !s.suppress_tokens.empty() ||
         !s.begin_suppress_tokens.empty() || s.exponential_decay_length_penalty || s.remove_invalid_values;
}

std::array<float, ops::kSampleSettings> sample_settings(const GenerationSettings& s) {
  std::array<float, ops::kSampleSettings> row = {0, 0, 1, 0, 1, 0, 0};
  if (!s.do_sample) return row;
  row[ops::kTemperature] = static_cast<float>(s.temperature);
  row[ops::kTopK] = static_cast<float>(s.top_k);
  row[ops::kTopP] = static_cast<float>(s.top_p);
  row[ops::kMinP] = static_cast<float>(s.min_p);
  row[ops::kTypicalP] = static_cast<float>(s.typical_p);
  // The reference takes 1 for off too.
  row[ops::kEpsilon] = s.epsilon_cutoff < 1 ? static_cast<float>(s.epsilon_cutoff) : 0.0f;
  row[ops::kEta] = s.eta_cutoff < 1 ? static_cast<float>(s.eta_cutoff) : 0.0f;
  return row;
}

uint64_t sample_key(uint64_t seed) { return fnv1a64("sampling") ^ seed; }

void process_scores(const GenerationSettings& s, std::span<const int32_t> history, int64_t prompt_length,
                    int64_t max_length, std::span<double> scores) {
  const LogitChanges changes = logit_changes(s, history, prompt_length, max_length);
  const auto each = [&](ops::LogitEdit kind, const auto& change) {
    for (const LogitChanges::Edit& e : changes.edits)
      if (e.kind == kind && e.token >= 0 && static_cast<size_t>(e.token) < scores.size())
        change(scores[static_cast<size_t>(e.token)], static_cast<double>(e.value));
  };
  const auto ban = [](double& score, double) { score = static_cast<double>(kNever); };
  each(ops::kAdd, [](double& score, double bias) { score += bias; });
  if (counts_tokens(s)) {
    std::map<int32_t, int64_t> counts;  // how often each was generated
    for (size_t i = 0; i < history.size(); ++i) counts[history[i]] += static_cast<int64_t>(i) >= prompt_length ? 1 : 0;
    for (const auto& [id, count] : counts) {
      if (id < 0 || static_cast<size_t>(id) >= scores.size()) continue;
      double& score = scores[static_cast<size_t>(id)];
      score = score < 0 ? score * s.repetition_penalty : score / s.repetition_penalty;
      score -= s.frequency_penalty * static_cast<double>(count) + (count > 0 ? s.presence_penalty : 0.0);
    }
  }
  if (changes.rules[ops::kForce] != 0) std::ranges::fill(scores, static_cast<double>(kNever));
  each(ops::kBan, ban);
  each(ops::kSet, [](double& score, double value) { score = value; });
  if (s.remove_invalid_values) {
    const auto most = static_cast<double>(std::numeric_limits<float>::max());
    for (double& score : scores) score = std::isnan(score) ? 0 : std::clamp(score, -most, most);
  }
  each(ops::kStretch, [](double& score, double value) {
    if (std::isfinite(score)) score += std::abs(score) * value;
  });
  each(ops::kLateBan, ban);
}

}  // namespace hierarchos::generate
