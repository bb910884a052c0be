// The layout in which the CPU's products read a weight: blocks of 16 rows, side by side in the lanes of a vector.
//
// kRows16 of a matrix [N, K]: groups of 16 rows (the last one filled up with zeros), one after another; a group is a
// sequence of pieces of 32 columns. Lane r of a vector is row r of the group.
//   bf16       16 words of 2 columns (2i, 2i + 1) for each lane: word i of all lanes, then word i + 1 …
//   blocks     scales of the lanes, then minima, fifth or upper bits and the low four bits (or bytes). A pair of
//   columns
//              (2i, 2i + 1) comes out of a 32-bit word as its two 16-bit halves by one shift and one mask.
// Formats of 256 columns have what their piece of 256 shares before its eight pieces of 32. Values are the file's, bit
// by bit; six-bit scales take a byte each, so Q4_K and Q5_K grow by 4 bytes in 144 and 176.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hierarchos {

inline constexpr uint32_t kRows16 = 1;  // a LayoutId (graph/type.h)
inline constexpr int64_t kGroupRows = 16, kPieceColumns = 32;

// Where the parts of a group lie, in bytes. A piece of 32 columns begins at its superblock's start + shared +
// (piece in superblock)·piece.
struct Rows16 {
  int64_t shared = 0;  // before the pieces of a superblock
  int64_t piece = 0;   // of 32 columns
  int64_t pieces = 1;  // in a superblock
  int64_t superblock() const { return shared + pieces * piece; }
};

// Whether kRows16 exists for a matrix of that kind: bf16 with an even number of columns padded to 32, Q4_0, Q4_1, Q5_0,
// Q5_1, Q8_0, Q4_K, Q5_K and Q6_K.
bool has_rows16(DType dtype, Storage storage);
Rows16 rows16_of(Storage storage);  // Plain is bf16
int64_t rows16_bytes(Storage storage, const Shape& shape);
int64_t rows16_group_bytes(Storage storage, int64_t columns);

// Rows [group·16, …) of a row-major matrix [rows, columns] as one group.
void interleave_group(Storage storage, std::span<const std::byte> matrix, int64_t rows, int64_t columns, int64_t group,
                      std::byte* out);
// Row `row` of a matrix in kRows16 as fp32: the values of dequantize(), to the bit.
void decode_row16(Storage storage, const std::byte* matrix, int64_t columns, int64_t row, float* out);

// The same row of a bf16 matrix as it is.
void copy_row16(const std::byte* matrix, int64_t columns, int64_t row, std::byte* out);

}  // namespace hierarchos
