// How well a model foresees a text.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/decoder.h"
#include "runtime/session.h"

namespace hierarchos::generate {

struct PerplexityOptions {
  int64_t window = 1024;  // tokens that are read together
  int64_t stride = 0;     // tokens from one window's beginning to the next's; 0: the window, so that none overlap
  DType compute = DType::F32;
  std::function<Type(const std::string&, const Shape&)> parameter_type;
  std::function<void(int64_t scored, int64_t tokens)> progress;  // after each call; may throw to stop
};

struct PerplexityResult {
  double loss = 0;     // mean negative log-likelihood of the scored tokens, in nats; the perplexity is its exponential
  int64_t scored = 0;  // tokens
  int64_t tokens = 0;  // of the text
};

// Windows follow one another by the stride; each scores those of its tokens that the one before did not have, given the
// others of the window (transformers' documentation, "Perplexity of fixed-length models"). The first token of a window
// without overlap is not scored. Parameters must be in `store`. UserError where there is nothing to score.
PerplexityResult perplexity(const models::Description& description, std::shared_ptr<Storehouse> store,
                            std::span<const int32_t> ids, const PerplexityOptions& options);

}  // namespace hierarchos::generate
