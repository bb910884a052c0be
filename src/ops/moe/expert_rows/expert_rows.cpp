#include "ops/moe/expert_rows/expert_rows.h"

#include "ops/common.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "experts");
  const Type& t = c.inputs[0];
  const int64_t count = c.attrs.i("count"), tile = c.attrs.i("tile");
  if (t.dtype != DType::I32 || t.shape.rank() != 2 || !t.plain())
    c.fail("experts must be i32 [T, k], they are {}", t.to_string());
  if (count < 1 || tile < 1) c.fail("{} experts in tiles of {}", count, tile);
  const int64_t tiles = (t.shape.elements() + tile - 1) / tile + count;
  const Type rows(DType::I32, {tiles * tile});
  std::vector<Type> types = {rows, Type(DType::I32, t.shape), Type(DType::I32, {tiles})};
  if (c.attrs.i_or("orders", 0)) {
    types.push_back(rows);
    types.push_back(Type(DType::I32, {t.shape.elements()}));
  }
  return types;
}

}  // namespace

ExpertRows expert_rows(Value experts, int64_t count, int64_t tile, bool orders) {
  const auto r = experts.graph().emit(expert_rows_def(), {experts},
                                      {{"count", count}, {"tile", tile}, {"orders", int64_t{orders}}});
  ExpertRows rows{r[0], r[1], r[2], std::nullopt, std::nullopt};
  if (orders) {
    rows.token_order = r[3];
    rows.row_order = r[4];
  }
  return rows;
}

const OpDef& expert_rows_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "expert_rows";
    d.infer = infer;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
