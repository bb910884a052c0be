// The RWKV cell of Hierarchos coherent-v9: time mixing with a matrix state, then channel mixing, residuals inside.
#pragma once

#include <functional>
#include <string>

#include "graph/graph.h"

namespace hierarchos::models {

// State carried from token to token, rows B, width W, heads M of size N = W/M.
struct CellState {
  Value tm;      // [B, W] last input of the time mixing (after ln1)
  Value cm;      // [B, W] last input of the channel mixing (after ln2)
  Value v;       // [B, W] last value vector (kept for the layout only)
  Value out;     // [B, W] last output, the readout
  Value matrix;  // [B, M, N, N], rows are value channels
};

struct CellResult {
  Value y;  // [B, W]
  CellState state;
};

struct CellConfig {
  int64_t width = 0, head_size = 0;
  double state_clamp = 50, key_clamp = 12, deepembed_clamp = 4;  // 0 turns the last two off
};

// Reads a weight of the cell by its name within the package, "x_r", "receptance.weight" …, in the stored shape.
using CellWeights = std::function<Value(const std::string& name)>;

// x [B, W]; modulation [B, 4W] (the DeepEmbed vector of the token).
CellResult cell(const CellConfig& config, const CellWeights& weight, Value x, const CellState& state, Value modulation);

// Ranks of the decay and rate, and of the gate, low-rank matrices for a width.
int64_t low_rank(int64_t width, double scale);

}  // namespace hierarchos::models
