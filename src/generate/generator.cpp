#include "generate/generator.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "generate/stop_strings.h"

namespace hierarchos::generate {
namespace {

using Clock = std::chrono::steady_clock;

// A request while it is worked on.
class Sequence {
 public:
  Sequence(size_t index, const Request& request, int64_t place, const Decoder& decoder, const Tokenizer* tokenizer)
      : index_(index), request_(request), place_(place), history_(request.prompt), start_(Clock::now()) {
    const auto length = static_cast<int64_t>(request.prompt.size());
    most_ = most_new_tokens(request.settings, length);
    recompute_past_ = decoder.description().recompute_past;
    fits_ = std::min(most_, decoder.context() - length);
    if (tokenizer) text_.emplace(*tokenizer, request.settings.stop_strings);
    row_.sample = sample_settings(request.settings);
    row_.key = sample_key(request.settings.seed);
  }

  // A prompt, or the whole text again where the scaling of RoPE changes with its length.
  bool reading() const { return read_ < static_cast<int64_t>(request_.prompt.size()) || rereads(); }
  bool done() const { return done_; }
  size_t index() const { return index_; }
  const Request& request() const { return request_; }
  Continuation take() { return std::move(result_); }

  void begin(Decoder& decoder, bool counting) {
    // Keys and values of a beginning that is there already are not computed again; at least one token is read.
    std::vector<int32_t>& kept = decoder.kept(place_);
    size_t same = 0;
    if (!counting && !decoder.whole_prompts()) {
      const auto [a, b] = std::ranges::mismatch(kept, request_.prompt);
      same = std::min<size_t>(static_cast<size_t>(a - kept.begin()), request_.prompt.size() - 1);
    }
    kept.resize(same);
    read_ = static_cast<int64_t>(same);
  }

  // Appends what this sequence wants read now, at most `room` tokens.
  void add(Decoder& decoder, int64_t room, std::vector<Decoder::Token>& tokens, std::vector<Decoder::Row>& rows) {
    const auto length = static_cast<int64_t>(history_.size());
    if (rereads()) {
      read_ = 0;
      decoder.kept(place_).clear();
    }
    const int64_t left = length - read_, count = std::min(room, decoder.call_tokens(left));
    if (count <= 0) return;
    const auto prompt = static_cast<int64_t>(request_.prompt.size());
    for (int64_t i = read_; i < read_ + count; ++i) {
      int32_t kind = i < prompt ? ops::kPromptToken : ops::kNewToken;
      if (i == 0) kind |= ops::kRestart;
      tokens.push_back({history_[static_cast<size_t>(i)], static_cast<int32_t>(i), static_cast<int32_t>(place_),
                        decoder.slot(place_, i), kind});
      decoder.kept(place_).push_back(history_[static_cast<size_t>(i)]);
    }
    read_ += count;
    waits_ = read_ == length;
    if (!waits_) return;
    row_.token = static_cast<int32_t>(tokens.size() - 1);
    row_.step = static_cast<int32_t>(length - prompt);
    row_.changes = logit_changes(request_.settings, history_, prompt, prompt + most_);
    rows.push_back(row_);
  }
  bool waits() const { return waits_; }

  void accept(NewToken token, const OnToken& on_token) {
    waits_ = false;
    const int32_t id = token.id;
    history_.push_back(id);
    result_.ids.push_back(id);
    const GenerationSettings& s = request_.settings;
    std::optional<FinishReason> reason;
    if (std::ranges::count(s.eos_token_ids, id) > 0) reason = FinishReason::EndToken;
    if (text_) {
      token.text = text_->push(id);
      if (text_->stopped()) reason = FinishReason::StopString;
    }
    const auto made = static_cast<int64_t>(result_.ids.size());
    if (!reason && made >= fits_) reason = fits_ < most_ ? FinishReason::Context : FinishReason::Length;
    if (!reason && s.max_time && std::chrono::duration<double>(Clock::now() - start_).count() > *s.max_time)
      reason = FinishReason::Time;
    if (reason && text_) token.text += text_->finish();
    result_.text += token.text;
    const bool go_on = !on_token || on_token(token);
    if (request_.log_probs >= 0) result_.tokens.push_back(std::move(token));
    if (!reason && !go_on) reason = FinishReason::Stopped;
    if (reason) finish(*reason);
  }

 private:
  bool rereads() const {
    return recompute_past_ > 0 && read_ == recompute_past_ && static_cast<int64_t>(history_.size()) == read_ + 1;
  }
  void finish(FinishReason reason) {
    result_.reason = reason;
    done_ = true;
  }

  size_t index_;
  const Request& request_;
  int64_t place_;
  std::vector<int32_t> history_;
  int64_t read_ = 0, most_ = 0, fits_ = 0, recompute_past_ = 0;
  bool waits_ = false, done_ = false;
  Clock::time_point start_;
  std::optional<TextStream> text_;
  Decoder::Row row_;
  Continuation result_;
};

void check_request(const Request& request, const Decoder& decoder, const Tokenizer* tokenizer) {
  check_settings(request.settings);
  if (request.settings.num_beams > 1) throw UserError("num_beams is more than 1: this is a matter for beam_search");
  if (request.prompt.empty()) throw UserError("the prompt is empty");
  if (!request.settings.stop_strings.empty() && !tokenizer) throw UserError("stop strings need a tokenizer");
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (most_new_tokens(request.settings, length) < 1)
    throw UserError(
        "the prompt has {} tokens, and max_length {} leaves no room for a new one: set max_new_tokens instead", length,
        *request.settings.max_length);
  if (length >= decoder.context())
    throw UserError(
        "the prompt has {} tokens, and the context of {} leaves no room for a new one: shorten the prompt or "
        "ask for a larger context (the model was made for {})",
        length, decoder.context(), decoder.description().max_positions);
}

// One call's worth of tokens of all sequences, and what follows from it.
void step(Decoder& decoder, std::vector<std::unique_ptr<Sequence>>& active, DecoderParts parts,
          const OnToken& on_token) {
  std::vector<Decoder::Token> tokens;
  std::vector<Decoder::Row> rows;
  std::vector<Sequence*> waiting;
  // Prompts first, by themselves; then all continue together.
  const bool reading = std::ranges::any_of(active, [](const auto& s) { return s->reading(); });
  int64_t room = decoder.prefill_tokens();
  for (const auto& s : active) {
    if (s->reading() != reading) continue;
    const auto before = static_cast<int64_t>(tokens.size());
    if (before > 0 && decoder.whole_prompts() && reading) break;
    s->add(decoder, decoder.whole_prompts() ? decoder.context() : room, tokens, rows);
    if (s->waits()) waiting.push_back(s.get());
    room -= static_cast<int64_t>(tokens.size()) - before;
  }
  decoder.read(tokens, rows, parts);
  if (rows.empty()) return;
  const std::vector<int32_t> next = decoder.next();
  Decoder::LogProbs likely;
  if (parts.log_probs >= 0) likely = decoder.log_probs();
  // Where nothing could be drawn the id is 0.
  if (parts.draw && std::ranges::count(next, 0) > 0) {
    const std::vector<float> facts = decoder.facts();
    for (size_t r = 0; r < rows.size(); ++r)
      if (facts[2 * r + 1] == 0)
        throw DataError(
            "no token can be drawn: all scores are NaN or minus infinity; the model's weights may be damaged, or the "
            "settings ban every token");
  }
  const auto width = static_cast<size_t>(parts.log_probs + 1);
  for (size_t r = 0; r < waiting.size(); ++r) {
    NewToken token;
    token.request = waiting[r]->index();
    token.id = next[r];
    if (waiting[r]->request().log_probs >= 0) {
      token.log_prob = static_cast<double>(likely.values[r * width]);
      for (size_t j = 1; j <= static_cast<size_t>(waiting[r]->request().log_probs); ++j)
        token.likeliest.push_back({likely.ids[r * width + j], static_cast<double>(likely.values[r * width + j])});
    }
    waiting[r]->accept(std::move(token), on_token);
  }
}

}  // namespace

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::EndToken:
      return "end_token";
    case FinishReason::StopString:
      return "stop_string";
    case FinishReason::Length:
      return "length";
    case FinishReason::Context:
      return "context";
    case FinishReason::Time:
      return "time";
    default:
      return "stopped";
  }
}

std::vector<Continuation> generate(Decoder& decoder, std::span<const Request> requests, const Tokenizer* tokenizer,
                                   const OnToken& on_token) {
  // A program for all: parts that a request does not need change nothing for it.
  DecoderParts parts;
  for (const Request& r : requests) {
    check_request(r, decoder, tokenizer);
    parts.changes = parts.changes || changes_logits(r.settings);
    parts.draw = parts.draw || r.settings.do_sample;
    parts.log_probs = std::max(parts.log_probs, r.log_probs);
  }
  std::vector<Continuation> results(requests.size());
  std::vector<std::unique_ptr<Sequence>> active;
  std::vector<int64_t> free;
  for (int64_t place = decoder.sequences(); place-- > 0;) free.push_back(place);
  std::vector<int64_t> places(requests.size());
  size_t next = 0;
  while (next < requests.size() || !active.empty()) {
    while (next < requests.size() && !free.empty()) {
      places[next] = free.back();
      free.pop_back();
      active.push_back(std::make_unique<Sequence>(next, requests[next], places[next], decoder, tokenizer));
      active.back()->begin(decoder, parts.changes);
      ++next;
    }
    if (std::ranges::any_of(active, [](const auto& s) { return !s->done(); })) step(decoder, active, parts, on_token);
    std::erase_if(active, [&](const std::unique_ptr<Sequence>& s) {
      if (!s->done()) return false;
      results[s->index()] = s->take();
      free.push_back(places[s->index()]);
      return true;
    });
  }
  return results;
}

std::vector<int32_t> greedy(Decoder& decoder, std::span<const int32_t> prompt, const GenerationSettings& settings) {
  Request request{{prompt.begin(), prompt.end()}, settings};
  request.settings.do_sample = false;
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  const std::vector<int32_t> made = generate(decoder, std::span(&request, 1))[0].ids;
  ids.insert(ids.end(), made.begin(), made.end());
  return ids;
}

}  // namespace hierarchos::generate
