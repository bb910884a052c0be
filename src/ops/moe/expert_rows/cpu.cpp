// A counting sort on one thread: a few operations a token, which no second thread would make faster.
#include <algorithm>

#include "ops/cpu/kernel.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

struct Sizes {
  int64_t entries = 0, per_token = 0, count = 0, tile = 0, rows = 0;
  bool orders = false;
};

// Scratch (the last operand): where the next row of each expert goes, then the entry of each row.
void sort(const Sizes& s, const int32_t* experts, std::span<std::byte* const> at) {
  auto* token = reinterpret_cast<int32_t*>(at[1]);
  auto* row = reinterpret_cast<int32_t*>(at[2]);
  auto* tile_expert = reinterpret_cast<int32_t*>(at[3]);
  auto* next = reinterpret_cast<int64_t*>(at.back());
  const auto routed = [&](int64_t i) { return experts[i] >= 0 && experts[i] < s.count; };
  std::fill_n(token, s.rows, -1);
  std::fill_n(tile_expert, s.rows / s.tile, -1);
  std::fill_n(next, s.count, int64_t{0});
  for (int64_t i = 0; i < s.entries; ++i)
    if (routed(i)) ++next[experts[i]];
  int64_t begin = 0;
  for (int64_t e = 0; e < s.count; ++e) {
    const int64_t tiles = (next[e] + s.tile - 1) / s.tile;
    std::fill_n(tile_expert + begin / s.tile, tiles, static_cast<int32_t>(e));
    next[e] = begin;
    begin += tiles * s.tile;
  }
  for (int64_t i = 0; i < s.entries; ++i) {
    row[i] = routed(i) ? static_cast<int32_t>(next[experts[i]]++) : -1;
    if (row[i] >= 0) token[row[i]] = static_cast<int32_t>(i / s.per_token);
  }
}

void order(const Sizes& s, std::span<std::byte* const> at) {
  const auto* token = reinterpret_cast<const int32_t*>(at[1]);
  const auto* row = reinterpret_cast<const int32_t*>(at[2]);
  auto* token_order = reinterpret_cast<int32_t*>(at[4]);
  auto* row_order = reinterpret_cast<int32_t*>(at[5]);
  auto* entry = reinterpret_cast<int32_t*>(at.back() + s.count * 8);  // of each row
  for (int64_t r = 0; r < s.rows; ++r)
    if (token[r] < 0) *token_order++ = static_cast<int32_t>(r);
  for (int64_t i = 0; i < s.entries; ++i) {
    if (row[i] < 0) {
      *row_order++ = static_cast<int32_t>(i);
      continue;
    }
    *token_order++ = row[i];
    entry[row[i]] = static_cast<int32_t>(i);
  }
  for (int64_t r = 0; r < s.rows; ++r)
    if (token[r] >= 0) *row_order++ = entry[r];
}

}  // namespace

std::unique_ptr<Kernel> expert_rows_cpu(CpuBackend&, const KernelRequest& request) {
  Sizes s;
  s.entries = request.inputs[0].shape.elements();
  s.per_token = request.inputs[0].shape[1];
  s.count = request.attrs.i("count");
  s.tile = request.attrs.i("tile");
  s.rows = request.outputs[0].shape[0];
  s.orders = request.attrs.i_or("orders", 0) != 0;
  return cpu::make_kernel(
      "expert_rows",
      [s](ThreadPool&, std::span<std::byte* const> at) {
        sort(s, reinterpret_cast<const int32_t*>(at[0]), at);
        if (s.orders) order(s, at);
      },
      s.count * 8 + s.rows * 4);
}

}  // namespace hierarchos::ops
