// Sorts routed tokens by expert and pads each expert's rows to whole tiles: the maps that grouped products run over.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace hierarchos::ops {

struct ExpertRows {
  Value token;        // [R] I32: which token fills a row of the sorted matrix, -1 for padding
  Value row;          // [T, k] I32: where (token, choice) lies among the rows: the combine gathers from there
  Value tile_expert;  // [R / tile] I32: the expert of a tile of rows, -1 for tiles that are not used
  // With `orders`, what the gradients of the two look-ups need: the indices of `token` (row, flattened) sorted by its
  // value, -1 first. Of equal values those of `token` are in the order of choices, those of `row` in their own.
  std::optional<Value> token_order, row_order;  // [R], [T·k] I32
};
// experts [T, k] I32 in [0, count) (others are not routed: row -1). R = capacity for every routing:
// tile · (⌈T·k / tile⌉ + count), so that no token is ever dropped. Within an expert, rows are in token order.
ExpertRows expert_rows(Value experts, int64_t count, int64_t tile, bool orders = false);
const OpDef& expert_rows_def();  // attrs count, tile, orders; results in the order above

}  // namespace hierarchos::ops
