// What models derive on the host from the token axis' integer inputs.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace hierarchos::nn {

// Which keys a query may see.
struct MaskSpec {
  bool causal = true;
  int64_t window = 0;  // > 0: only the last `window` keys, the query's own included
  int64_t chunk = 0;   // > 0: only keys of the same chunk of positions
  // Keys are rows of a cache, and a segment's logical key j is its token at position j. Otherwise keys are the rows of
  // the same call: those of a segment stand together, in order of position.
  bool cached = false;

  friend bool operator==(const MaskSpec&, const MaskSpec&) = default;
};

// Derived input [T, 2] I32 of `positions` and `segments`: the range of keys of each query (ops::AttentionSpec::ranges).
// Rows of segment -1 are padding: an empty range. Called again with the same mask gives the same value.
Value attention_ranges(Graph& graph, const MaskSpec& mask, int64_t tokens);
// The host function behind it.
std::vector<int32_t> attention_ranges(const MaskSpec& mask, std::span<const int32_t> positions,
                                      std::span<const int32_t> segments);

// Derived input [T] I32 of the input called `ids`: its indices sorted by value, stable, as the gradient of a look-up
// needs them.
Value sorted_order(Graph& graph, const std::string& ids, int64_t tokens);

}  // namespace hierarchos::nn
