// Vector code of the linear recurrence, one token and head at a time. All rows of channels are padded with zeros to
// `padded(n)` floats, so no loop has a remainder.
#pragma once

#include <cstdint>

namespace hierarchos::scan_steps {

int64_t padded(int64_t n);
int64_t lanes();

// One token's rows: decay λ (already exponentiated), k, r, and u and w or null, each [Nk].
struct Token {
  const float *decay = nullptr, *k = nullptr, *r = nullptr, *u = nullptr, *w = nullptr;
};

void exponentials(const float* log_decay, int64_t n, float* decay);

// The state transposed, [Nk][rows], so that each lane is one row of S and nothing is summed across lanes: S is
// advanced, y = S·r. v and y have `rows` elements, a multiple of lanes().
void forward(const Token& token, int64_t keys, int64_t rows, float* state, const float* v, float* y);

// The state as it is, [Nv][padded Nk]: after = before·(diag λ + u wᵀ) + v kᵀ.
void advance(const Token& token, int64_t values, int64_t keys, const float* before, const float* v, float* after);

// Gradients of one token, summed over the values. They start at zero; ddecay is with respect to log_decay a channel.
struct TokenGrads {
  float *r = nullptr, *k = nullptr, *decay = nullptr, *u = nullptr, *w = nullptr;  // [padded Nk]
  float* v = nullptr;                                                              // [Nv]
};
// g [Nv][padded Nk]: the gradient of the state after the token, without this token's y, becomes that before it.
void backward(const Token& token, int64_t values, int64_t keys, const float* before, const float* after, const float* v,
              const float* dy, float* g, const TokenGrads& grads);

}  // namespace hierarchos::scan_steps
