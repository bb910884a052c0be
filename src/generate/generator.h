// Continues prompts of any lengths side by side.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "generate/decoder.h"
#include "generate/settings.h"
#include "tokenizer/tokenizer.h"

namespace hierarchos::generate {

struct TokenLogProb {
  int32_t id = 0;
  double value = 0;
};

// A token that was chosen.
struct NewToken {
  size_t request = 0;  // whose
  int32_t id = 0;
  std::string
      text;  // what is certain by now: nothing while a character, or what may become a stop string, is incomplete
  double log_prob = 0;                  // in the model's own distribution; 0 unless asked for
  std::vector<TokenLogProb> likeliest;  // as many as asked for
};

enum class FinishReason : uint8_t { EndToken, StopString, Length, Context, Time, Stopped };
std::string_view name_of(FinishReason reason);

struct Continuation {
  std::vector<int32_t> ids;  // the new tokens, an end token included
  std::string text;          // without special tokens, up to a stop string; empty without a tokenizer
  FinishReason reason = FinishReason::Length;
  std::vector<NewToken> tokens;  // with log-probabilities, if they were asked for
};

struct Request {
  std::vector<int32_t> prompt;
  GenerationSettings settings;
  int64_t log_probs = -1;  // -1: none; 0: of the chosen tokens; n: also of the n likeliest of each step
};

// Sees each new token and may return false to end that request.
using OnToken = std::function<bool(const NewToken&)>;

// Greedy search or sampling, as each request says. What a request gets does not depend on the others, but for the
// rounding of sums. More requests than the decoder has sequences take turns. Without a tokenizer there is no text, and
// stop strings are refused. A prompt that does not fit the context is refused; where its continuation does not, it
// ends.
std::vector<Continuation> generate(Decoder& decoder, std::span<const Request> requests,
                                   const Tokenizer* tokenizer = nullptr, const OnToken& on_token = {});

// One request, prompt and new ids.
std::vector<int32_t> greedy(Decoder& decoder, std::span<const int32_t> prompt, const GenerationSettings& settings);

}  // namespace hierarchos::generate
