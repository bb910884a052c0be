// Runs a pointwise expression over one tile of elements, instruction by instruction, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/pointwise/expr.h"

namespace hierarchos::cpu {

// Elements of a tile: small enough that a chain's registers stay in the first cache, large enough that decoding an
// instruction costs nothing.
inline constexpr int64_t kTile = 1024;

struct TileInstr {
  PointwiseOp op;
  bool integer;  // its operands are integers
  uint16_t out, a, b, c;  // buffers
};

// Each buffer holds kTile elements of 4 bytes: floats, or int32 for integer registers. Runs all instructions over the
// first `count` elements (and over what follows, up to a whole vector).
void run_tile(const TileInstr* code, size_t instructions, float* const* buffers, int64_t count);

}  // namespace hierarchos::cpu
