// Rotary position tables (Su et al. 2021) and their scalings, as transformers' modeling_rope_utils.py defines them,
// computed on the host in float64.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace hierarchos::nn {

enum class RopeKind : uint8_t { Default, Linear, Dynamic, Yarn, LongRope, Llama3 };

struct RopeParams {
  RopeKind kind = RopeKind::Default;
  // Rotated channels of a head. An odd number counts as it is in the exponents and rotates one channel more.
  int64_t dim = 0;
  double theta = 10000;
  double factor = 1;
  int64_t max_positions = 0;           // max_position_embeddings
  int64_t original_max_positions = 0;  // yarn, longrope, llama3
  double attention_factor = 1;         // multiplies cos and sin; resolved when the config is read
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;                              // yarn
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  std::vector<double> short_factor, long_factor;     // longrope, one a pair
  bool interleaved = false;                          // pairs (2p, 2p+1) rather than (p, p + pairs)

  int64_t pairs() const { return (dim + 1) / 2; }
  // Whether a rotation depends on the length of the sequence, not on the position alone.
  bool depends_on_length() const { return kind == RopeKind::Dynamic || kind == RopeKind::LongRope; }
  friend bool operator==(const RopeParams&, const RopeParams&) = default;
};

// Inverse frequencies, one a pair, for a sequence of that length (dynamic and longrope depend on it).
std::vector<double> rope_inverse_frequencies(const RopeParams& params, int64_t sequence_length);

struct RopeTables {
  Value cos, sin;  // fp32 [T, pairs]: a row a token
};
// Derived inputs NAME.cos and NAME.sin of `positions` and `segments`. Dynamic scalings take the length of each segment
// in the call (its largest position + 1), so a result does not depend on what else is in the call; keys in a cache keep
// the rotation that they were written with, as in the reference.
RopeTables rope_tables(Graph& graph, const std::string& name, const RopeParams& params, int64_t tokens);

}  // namespace hierarchos::nn
