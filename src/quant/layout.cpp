#include "quant/layout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "quant/k_scales.h"

namespace hierarchos {
namespace {

using Byte = uint8_t;
constexpr int kLanes = static_cast<int>(kGroupRows);

// 32 columns of one row: whole numbers, and the halves and bytes that scale them.
struct Codes {
  uint16_t d = 0, m = 0;   // half precision, of the block or superblock
  Byte scale[2] = {0, 0};  // of K formats: Q6_K has one for each 16 columns
  Byte min = 0;
  std::array<Byte, 32> q{};  // unsigned codes; bytes of Q8_0
};

uint16_t half_at(const Byte* at) {
  uint16_t v;
  std::memcpy(&v, at, sizeof(v));
  return v;
}

void nibbles(const Byte* from, Codes* c) {
  for (size_t i = 0; i < 16; ++i) {
    c->q[i] = from[i] & 15;
    c->q[i + 16] = static_cast<Byte>(from[i] >> 4);
  }
}

void fifth_bits(const Byte* from, Codes* c) {
  uint32_t high;
  std::memcpy(&high, from, sizeof(high));
  for (size_t i = 0; i < 32; ++i) c->q[i] = static_cast<Byte>(c->q[i] | (((high >> i) & 1) << 4));
}

void read_k4_or_k5(const Byte* b, int64_t j, bool five, Codes* c) {
  c->d = half_at(b);
  c->m = half_at(b + 2);
  int scale, min;
  k_scale_min(static_cast<int>(j), b + 4, &scale, &min);
  c->scale[0] = static_cast<Byte>(scale);
  c->min = static_cast<Byte>(min);
  const Byte* high = b + 16;
  const Byte* low = (five ? b + 48 : b + 16) + 32 * (j / 2);
  for (size_t i = 0; i < 32; ++i) {
    const int four = j % 2 ? low[i] >> 4 : low[i] & 15;
    c->q[i] = static_cast<Byte>(four | (five ? ((high[i] >> j) & 1) << 4 : 0));
  }
}

void read_k6(const Byte* b, int64_t j, Codes* c) {
  c->d = half_at(b + 208);
  const int64_t half = j / 4, part = j % 4;  // 128 columns, then 32 of them
  const Byte *low = b + 64 * half + 32 * (part % 2), *high = b + 128 + 32 * half,
             *scales = b + 192 + 8 * half + 2 * part;
  c->scale[0] = scales[0];
  c->scale[1] = scales[1];
  for (size_t i = 0; i < 32; ++i)
    c->q[i] = static_cast<Byte>((part < 2 ? low[i] & 15 : low[i] >> 4) | (((high[i] >> (2 * part)) & 3) << 4));
}

// Columns [32·piece, 32·piece + 32) of a row in the file's blocks.
void read(Storage storage, const Byte* row, int64_t piece, Codes* c) {
  const Byte* b = row + 32 * piece / block_elements(storage) * block_bytes(storage);
  switch (storage) {
    case Storage::Q4_0:
      c->d = half_at(b);
      return nibbles(b + 2, c);
    case Storage::Q4_1:
      c->d = half_at(b);
      c->m = half_at(b + 2);
      return nibbles(b + 4, c);
    case Storage::Q5_0:
      c->d = half_at(b);
      nibbles(b + 6, c);
      return fifth_bits(b + 2, c);
    case Storage::Q5_1:
      c->d = half_at(b);
      c->m = half_at(b + 2);
      nibbles(b + 8, c);
      return fifth_bits(b + 4, c);
    case Storage::Q8_0:
      c->d = half_at(b);
      std::memcpy(c->q.data(), b + 2, 32);
      return;
    case Storage::Q4_K:
    case Storage::Q5_K:
      return read_k4_or_k5(b, piece % 8, storage == Storage::Q5_K, c);
    case Storage::Q6_K:
      return read_k6(b, piece % 8, c);
    default:
      throw UnsupportedError("{} blocks have no interleaved layout", name_of(storage));
  }
}

// Offsets in a piece of 32 columns; -1 where the format has no such part.
struct Parts {
  int d = -1, m = -1;                // halves, in the piece
  int shared_d = -1, shared_m = -1;  // halves, before the superblock's pieces
  int scale = -1, min = -1;          // bytes of the K formats
  int high = -1, high_bits = 0;
  int low = 0;
  bool bytes = false;  // whole bytes instead of nibbles
};

Parts parts_of(Storage storage) {
  switch (storage) {
    case Storage::Q4_0:
      return {.d = 0, .low = 32};
    case Storage::Q4_1:
      return {.d = 0, .m = 32, .low = 64};
    case Storage::Q5_0:
      return {.d = 0, .high = 32, .high_bits = 1, .low = 96};
    case Storage::Q5_1:
      return {.d = 0, .m = 32, .high = 64, .high_bits = 1, .low = 128};
    case Storage::Q8_0:
      return {.d = 0, .low = 32, .bytes = true};
    case Storage::Q4_K:
      return {.shared_d = 0, .shared_m = 32, .scale = 0, .min = 16, .low = 32};
    case Storage::Q5_K:
      return {.shared_d = 0, .shared_m = 32, .scale = 0, .min = 16, .high = 32, .high_bits = 1, .low = 96};
    case Storage::Q6_K:
      return {.shared_d = 0, .scale = 0, .high = 32, .high_bits = 2, .low = 160};
    default:
      throw UnsupportedError("{} blocks have no interleaved layout", name_of(storage));
  }
}

template <typename T>
void put(Byte* at, int lane, T value) {
  std::memcpy(at + lane * static_cast<int>(sizeof(T)), &value, sizeof(T));
}
template <typename T>
T get(const Byte* at, int lane) {
  T value;
  std::memcpy(&value, at + lane * static_cast<int>(sizeof(T)), sizeof(T));
  return value;
}

// Bits of columns 2i (from bit `bits`·i) and 2i + 1 (from bit 16 + `bits`·i) of up to 32 / bits columns.
uint32_t gather_high(const Byte* q, int columns, int bits) {
  uint32_t word = 0;
  for (int i = 0; i < columns / 2; ++i) {
    word |= static_cast<uint32_t>(q[2 * i] >> 4) << (bits * i);
    word |= static_cast<uint32_t>(q[2 * i + 1] >> 4) << (16 + bits * i);
  }
  return word;
}

void write(const Parts& p, const Codes& c, int lane, Byte* shared, Byte* piece) {
  if (p.shared_d >= 0) put(shared + p.shared_d, lane, c.d);
  if (p.shared_m >= 0) put(shared + p.shared_m, lane, c.m);
  if (p.d >= 0) put(piece + p.d, lane, c.d);
  if (p.m >= 0) put(piece + p.m, lane, c.m);
  if (p.scale >= 0) {
    piece[p.scale + lane] = c.scale[0];
    if (p.min >= 0)
      piece[p.min + lane] = c.min;
    else
      piece[p.scale + kLanes + lane] = c.scale[1];
  }
  for (int w = 0; w < p.high_bits; ++w)
    put(piece + p.high + 64 * w, lane, gather_high(c.q.data() + 32 / p.high_bits * w, 32 / p.high_bits, p.high_bits));
  if (p.bytes) {
    for (int z = 0; z < 8; ++z) {
      const Byte* q = c.q.data() + 4 * z;
      const Byte word[4] = {q[0], q[2], q[1], q[3]};
      std::memcpy(piece + p.low + 64 * z + 4 * lane, word, 4);
    }
    return;
  }
  for (int z = 0; z < 4; ++z) {
    const Byte* q = c.q.data() + 8 * z;
    uint32_t word = 0;
    for (int j = 0; j < 4; ++j)
      word |= (static_cast<uint32_t>(q[2 * j] & 15) | static_cast<uint32_t>(q[2 * j + 1] & 15) << 16) << (4 * j);
    put(piece + p.low + 64 * z, lane, word);
  }
}

Codes read_back(const Parts& p, int lane, const Byte* shared, const Byte* piece) {
  Codes c;
  if (p.shared_d >= 0) c.d = get<uint16_t>(shared + p.shared_d, lane);
  if (p.shared_m >= 0) c.m = get<uint16_t>(shared + p.shared_m, lane);
  if (p.d >= 0) c.d = get<uint16_t>(piece + p.d, lane);
  if (p.m >= 0) c.m = get<uint16_t>(piece + p.m, lane);
  if (p.scale >= 0) {
    c.scale[0] = piece[p.scale + lane];
    if (p.min >= 0)
      c.min = piece[p.min + lane];
    else
      c.scale[1] = piece[p.scale + kLanes + lane];
  }
  if (p.bytes) {
    for (size_t i = 0; i < 32; ++i) {
      const size_t z = i / 4, order[4] = {0, 2, 1, 3};
      c.q[i] = piece[static_cast<size_t>(p.low) + 64 * z + 4 * static_cast<size_t>(lane) + order[i % 4]];
    }
    return c;
  }
  for (int i = 0; i < 32; ++i) {
    const auto low = get<uint32_t>(piece + p.low + 64 * (i / 8), lane);
    uint32_t q = (low >> (4 * (i % 8 / 2) + 16 * (i % 2))) & 15;
    if (p.high_bits > 0) {
      const int columns = 32 / p.high_bits, at = i % columns;
      const auto high = get<uint32_t>(piece + p.high + 64 * (i / columns), lane);
      q |= ((high >> (p.high_bits * (at / 2) + 16 * (at % 2))) & ((1u << p.high_bits) - 1)) << 4;
    }
    c.q[static_cast<size_t>(i)] = static_cast<Byte>(q);
  }
  return c;
}

// The values of blocks.cpp, operation by operation.
void to_values(Storage storage, const Codes& c, float* y) {
  const float d = f16_to_f32(c.d), m = f16_to_f32(c.m);
  for (size_t i = 0; i < 32; ++i) {
    const int q = c.q[i];
    switch (storage) {
      case Storage::Q4_0:
        y[i] = d * static_cast<float>(q - 8);
        break;
      case Storage::Q4_1:
        y[i] = d * static_cast<float>(q) + m;
        break;
      case Storage::Q5_0:
        y[i] = d * (static_cast<float>(q) - 16) + 0.0f;
        break;
      case Storage::Q5_1:
        y[i] = d * static_cast<float>(q) + m;
        break;
      case Storage::Q8_0:
        y[i] = d * static_cast<float>(static_cast<int8_t>(c.q[i]));
        break;
      case Storage::Q4_K:
      case Storage::Q5_K:
        y[i] = d * static_cast<float>(c.scale[0]) * static_cast<float>(q) - m * static_cast<float>(c.min);
        break;
      default:  // Q6_K
        y[i] = d * static_cast<float>(static_cast<int8_t>(c.scale[i / 16])) * static_cast<float>(q - 32);
    }
  }
}

// bf16: word i of a lane is columns 2i and 2i + 1.
void interleave_bf16(const Byte* matrix, int64_t rows, int64_t columns, int64_t group, Byte* out) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const int64_t row = group * kGroupRows + lane;
    if (row >= rows) break;
    const Byte* from = matrix + row * columns * 2;
    for (int64_t i = 0; i < columns; ++i) std::memcpy(out + i / 2 * 64 + lane * 4 + i % 2 * 2, from + i * 2, 2);
  }
}

int64_t pieces_of(int64_t columns) { return (columns + kPieceColumns - 1) / kPieceColumns; }

}  // namespace

bool has_rows16(DType dtype, Storage storage) {
  switch (storage) {
    case Storage::Plain:
      return dtype == DType::BF16;
    case Storage::Q4_0:
    case Storage::Q4_1:
    case Storage::Q5_0:
    case Storage::Q5_1:
    case Storage::Q8_0:
    case Storage::Q4_K:
    case Storage::Q5_K:
    case Storage::Q6_K:
      return true;
    default:
      return false;
  }
}

Rows16 rows16_of(Storage storage) {
  switch (storage) {
    case Storage::Plain:
      return {0, 1024, 1};
    case Storage::Q4_0:
      return {0, 288, 1};
    case Storage::Q4_1:
      return {0, 320, 1};
    case Storage::Q5_0:
      return {0, 352, 1};
    case Storage::Q5_1:
      return {0, 384, 1};
    case Storage::Q8_0:
      return {0, 544, 1};
    case Storage::Q4_K:
      return {64, 288, 8};
    case Storage::Q5_K:
      return {64, 352, 8};
    case Storage::Q6_K:
      return {32, 416, 8};
    default:
      throw UnsupportedError("{} blocks have no interleaved layout", name_of(storage));
  }
}

int64_t rows16_group_bytes(Storage storage, int64_t columns) {
  const Rows16 form = rows16_of(storage);
  return (pieces_of(columns) + form.pieces - 1) / form.pieces * form.superblock();
}

int64_t rows16_bytes(Storage storage, const Shape& shape) {
  const int64_t groups = (shape.rows() + kGroupRows - 1) / kGroupRows;
  return groups * rows16_group_bytes(storage, shape.back());
}

void interleave_group(Storage storage, std::span<const std::byte> matrix, int64_t rows, int64_t columns, int64_t group,
                      std::byte* to) {
  auto* out = reinterpret_cast<Byte*>(to);
  const auto* data = reinterpret_cast<const Byte*>(matrix.data());
  std::memset(out, 0, static_cast<size_t>(rows16_group_bytes(storage, columns)));
  if (storage == Storage::Plain) return interleave_bf16(data, rows, columns, group, out);
  const Rows16 form = rows16_of(storage);
  const Parts parts = parts_of(storage);
  const int64_t row_bytes = columns / block_elements(storage) * block_bytes(storage);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int64_t row = group * kGroupRows + lane;
    if (row >= rows) break;
    for (int64_t p = 0; p < columns / kPieceColumns; ++p) {
      Codes codes;
      read(storage, data + row * row_bytes, p, &codes);
      Byte* shared = out + p / form.pieces * form.superblock();
      write(parts, codes, lane, shared, shared + form.shared + p % form.pieces * form.piece);
    }
  }
}

void decode_row16(Storage storage, const std::byte* matrix, int64_t columns, int64_t row, float* out) {
  const auto* group = reinterpret_cast<const Byte*>(matrix) + row / kGroupRows * rows16_group_bytes(storage, columns);
  const auto lane = static_cast<int>(row % kGroupRows);
  if (storage == Storage::Plain) {
    for (int64_t i = 0; i < columns; ++i) out[i] = bf16_to_f32(get<uint16_t>(group + i / 2 * 64 + i % 2 * 2, 2 * lane));
    return;
  }
  const Rows16 form = rows16_of(storage);
  const Parts parts = parts_of(storage);
  for (int64_t p = 0; p < columns / kPieceColumns; ++p) {
    const Byte* shared = group + p / form.pieces * form.superblock();
    to_values(storage, read_back(parts, lane, shared, shared + form.shared + p % form.pieces * form.piece),
              out + 32 * p);
  }
}

void copy_row16(const std::byte* matrix, int64_t columns, int64_t row, std::byte* out) {
  const std::byte* group = matrix + row / kGroupRows * rows16_group_bytes(Storage::Plain, columns);
  for (int64_t i = 0; i < columns; ++i)
    std::memcpy(out + 2 * i, group + i / 2 * 64 + row % kGroupRows * 4 + i % 2 * 2, 2);
}

}  // namespace hierarchos
