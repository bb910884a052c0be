#include "generate/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "generate/processors.h"

namespace hierarchos::generate {
namespace {

// What the reference adds to scores that must not be chosen. A candidate can still win when all are such, so it must be
// this number and not -inf.
constexpr double kUnlikely = -1.0e9;

struct Beam {
  std::vector<int32_t> ids;
  std::vector<int32_t> slots;  // of the tokens read so far
  double score = kUnlikely;
};

struct Finished {
  std::vector<int32_t> ids;
  double score = kUnlikely;
  bool finished = false;
};

void log_softmax(std::span<double> x) {
  const double top = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (double v : x) total += std::exp(v - top);
  const double lse = top + std::log(total);
  for (double& v : x) v -= lse;
}

// Indices of the largest `count`, best first; the lower index first on a tie.
std::vector<size_t> top(std::span<const double> scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  order.resize(count);
  return order;
}

// Reads all tokens of all beams anew, each beam into slots of its own; returns their logits.
std::vector<float> read_again(Decoder& decoder, std::vector<Beam>& beams) {
  std::vector<Decoder::Token> tokens;
  std::vector<Decoder::Row> rows(beams.size());
  for (size_t b = 0; b < beams.size(); ++b) {
    Beam& beam = beams[b];
    beam.slots.clear();
    for (size_t i = 0; i < beam.ids.size(); ++i) {
      beam.slots.push_back(static_cast<int32_t>(tokens.size()));
      tokens.push_back({beam.ids[i], static_cast<int32_t>(i), static_cast<int32_t>(b), beam.slots.back()});
    }
    decoder.set_history(static_cast<int64_t>(b), beam.slots);
    rows[b].token = static_cast<int32_t>(tokens.size() - 1);
  }
  decoder.read(tokens, rows, {});
  return decoder.logits();
}

}  // namespace

std::vector<int32_t> beam_search(Decoder& decoder, std::span<const int32_t> prompt, const GenerationSettings& s) {
  const auto width = static_cast<size_t>(s.num_beams);
  check_settings(s);
  if (prompt.empty()) throw UserError("the prompt is empty");
  const auto prompt_length = static_cast<int64_t>(prompt.size());
  const int64_t max_length = prompt_length + most_new_tokens(s, prompt_length);
  if (!decoder.branching() || decoder.sequences() < s.num_beams)
    throw UserError("{} beams need a decoder that branches, with as many sequences", s.num_beams);
  if (max_length > decoder.context())
    throw UserError(
        "the prompt of {} tokens and {} new ones do not fit the context of {}: shorten the prompt, or ask for fewer "
        "tokens or a larger context",
        prompt_length, max_length - prompt_length, decoder.context());
  const auto vocab = static_cast<size_t>(decoder.description().vocab_size);
  const bool stop_when_full = s.early_stopping == EarlyStopping::Yes;
  // Enough candidates that `width` of them go on even when all of the best end.
  const size_t keep = std::max<size_t>(2, 1 + s.eos_token_ids.size()) * width;

  std::vector<Beam> running(width);
  running[0].score = 0;  // the others are equal to it at first and must not be taken
  for (Beam& beam : running) beam.ids.assign(prompt.begin(), prompt.end());
  std::vector<Finished> best(width);
  for (Finished& f : best) f.ids.assign(prompt.begin(), prompt.end());
  bool may_improve = true;

  // The prompt's keys lie in the first slots, for all beams.
  std::vector<int32_t> shared(prompt.size());
  std::iota(shared.begin(), shared.end(), 0);
  decoder.set_history(0, shared);
  std::vector<Decoder::Token> tokens;
  for (int64_t at = 0; at < prompt_length;) {
    tokens.clear();
    for (const int64_t end = at + decoder.call_tokens(prompt_length - at); at < end; ++at) {
      const auto i = static_cast<int32_t>(at);
      tokens.push_back({prompt[static_cast<size_t>(at)], i, 0, i});
    }
    decoder.read(tokens, 1);
  }
  for (Beam& beam : running) beam.slots = shared;
  std::vector<float> first = decoder.logits(), logits;
  for (size_t b = 0; b < width; ++b) logits.insert(logits.end(), first.begin(), first.end());
  auto next_slot = static_cast<int32_t>(prompt.size());

  for (int64_t length = prompt_length; length < max_length;) {
    std::vector<double> scores(logits.begin(), logits.end());
    for (size_t b = 0; b < width; ++b) {
      const std::span<double> row = std::span(scores).subspan(b * vocab, vocab);
      log_softmax(row);
      process_scores(s, running[b].ids, prompt_length, max_length, row);
      if (s.renormalize_logits) log_softmax(row);
      for (double& v : row) v += running[b].score;
    }
    struct Candidate {
      std::vector<int32_t> ids;
      size_t parent;
      double score;
      bool ends;
    };
    std::vector<Candidate> candidates;
    for (size_t index : top(scores, keep)) {
      Candidate c{running[index / vocab].ids, index / vocab, scores[index], false};
      const auto id = static_cast<int32_t>(index % vocab);
      c.ids.push_back(id);
      c.ends = length + 1 >= max_length || std::count(s.eos_token_ids.begin(), s.eos_token_ids.end(), id) > 0;
      candidates.push_back(std::move(c));
    }

    // Those that go on.
    std::vector<double> open;
    for (const Candidate& c : candidates) open.push_back(c.score + (c.ends ? kUnlikely : 0.0));
    std::vector<Beam> next;
    for (size_t index : top(open, width))
      next.push_back({candidates[index].ids, running[candidates[index].parent].slots, open[index]});

    // Those that ended, if they are among the best `width`, beside those that ended before.
    const bool full = std::all_of(best.begin(), best.end(), [](const Finished& f) { return f.finished; });
    std::vector<Finished> merged = best;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& c = candidates[i];
      const bool ended = c.ends && i < width;
      double score = c.score / std::pow(static_cast<double>(length + 1 - prompt_length), s.length_penalty);
      if (full && stop_when_full) score += kUnlikely;
      if (!may_improve) score += kUnlikely;
      if (!ended) score += kUnlikely;
      merged.push_back({c.ids, score, ended});
    }
    std::vector<double> merged_scores;
    for (const Finished& f : merged) merged_scores.push_back(f.score);
    best.clear();
    for (size_t index : top(merged_scores, width)) best.push_back(merged[index]);
    running = std::move(next);
    ++length;

    // Can an open beam still become better than the worst finished one?
    const int64_t hypothetical = s.early_stopping == EarlyStopping::Never && s.length_penalty > 0
                                     ? max_length - prompt_length
                                     : length - prompt_length;
    const double possible = running[0].score / std::pow(static_cast<double>(hypothetical), s.length_penalty);
    double worst = std::numeric_limits<double>::infinity();
    for (const Finished& f : best) worst = std::min(worst, f.score);
    bool improvement = false;
    for (const Finished& f : best) improvement = improvement || possible > (f.finished ? worst : kUnlikely);
    may_improve = may_improve && improvement;
    const bool all_finished = std::all_of(best.begin(), best.end(), [](const Finished& f) { return f.finished; });
    const bool all_end = std::all_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.ends; });
    if (!may_improve || (all_finished && stop_when_full) || all_end) break;

    if (const int64_t past = decoder.description().recompute_past; past > 0 && length == past + 1) {
      logits = read_again(decoder, running);
      next_slot = static_cast<int32_t>(static_cast<int64_t>(width) * length);
      continue;
    }
    tokens.clear();
    for (size_t b = 0; b < width; ++b) {
      Beam& beam = running[b];
      beam.slots.push_back(next_slot);
      decoder.set_history(static_cast<int64_t>(b), beam.slots);
      tokens.push_back({beam.ids.back(), static_cast<int32_t>(length - 1), static_cast<int32_t>(b), next_slot++});
    }
    decoder.read(tokens, static_cast<int64_t>(width));
    logits = decoder.logits();
  }
  return best[0].ids;
}

}  // namespace hierarchos::generate
