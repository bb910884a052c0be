#include <algorithm>

#include "ops/operator.h"

namespace hierarchos::ops {

void expert_rows_reference(const Attrs& attrs, std::span<const RefTensor* const> in, std::span<RefTensor> out) {
  const int64_t count = attrs.i("count"), tile = attrs.i("tile"), k = in[0]->type.shape[1];
  const std::vector<double>& experts = in[0]->data;
  std::vector<double>&token = out[0].data, &row = out[1].data, &tile_expert = out[2].data;
  for (std::vector<double>* v : {&token, &row, &tile_expert}) std::fill(v->begin(), v->end(), -1.0);
  int64_t next = 0;
  for (int64_t e = 0; e < count; ++e) {
    const int64_t first = next;
    for (size_t i = 0; i < experts.size(); ++i) {
      if (experts[i] != static_cast<double>(e)) continue;
      token[static_cast<size_t>(next)] = static_cast<double>(static_cast<int64_t>(i) / k);
      row[i] = static_cast<double>(next++);
    }
    for (int64_t t = first / tile; t * tile < next; ++t) tile_expert[static_cast<size_t>(t)] = static_cast<double>(e);
    next = (next + tile - 1) / tile * tile;
  }
  if (out.size() == 3) return;
  std::vector<double> token_order, row_order;
  for (size_t r = 0; r < token.size(); ++r)
    if (token[r] < 0) token_order.push_back(static_cast<double>(r));
  for (double r : row)
    if (r >= 0) token_order.push_back(r);
  for (size_t i = 0; i < row.size(); ++i) row_order.push_back(static_cast<double>(i));
  std::stable_sort(row_order.begin(), row_order.end(),
                   [&](double a, double b) { return row[static_cast<size_t>(a)] < row[static_cast<size_t>(b)]; });
  out[3].data = token_order;
  out[4].data = row_order;
}

}  // namespace hierarchos::ops
