#include "ops/moe/expert_rows/expert_rows.h"

#include <algorithm>

#include "ops/common.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "experts");
  const Type& t = c.inputs[0];
  const int64_t count = c.attrs.i("count"), tile = c.attrs.i("tile");
  if (t.dtype != DType::I32 || t.shape.rank() != 2 || !t.plain()) c.fail("experts must be i32 [T, k], they are {}", t.to_string());
  if (count < 1 || tile < 1) c.fail("{} experts in tiles of {}", count, tile);
  const int64_t tiles = (t.shape.elements() + tile - 1) / tile + count;
  return {Type(DType::I32, {tiles * tile}), Type(DType::I32, t.shape), Type(DType::I32, {tiles})};
}

}  // namespace

ExpertRows expert_rows(Value experts, int64_t count, int64_t tile) {
  const auto r = experts.graph().emit(expert_rows_def(), {experts}, {{"count", count}, {"tile", tile}});
  return {r[0], r[1], r[2]};
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

void expert_rows_reference(const Attrs& attrs, std::span<const RefTensor* const> in, std::span<RefTensor> out) {
  const int64_t count = attrs.i("count"), tile = attrs.i("tile"), k = in[0]->type.shape[1];
  std::fill(out[0].data.begin(), out[0].data.end(), -1.0);
  std::fill(out[1].data.begin(), out[1].data.end(), -1.0);
  std::fill(out[2].data.begin(), out[2].data.end(), -1.0);
  int64_t next = 0;
  for (int64_t e = 0; e < count; ++e) {
    const int64_t first = next;
    for (size_t i = 0; i < in[0]->data.size(); ++i) {
      if (in[0]->data[i] != static_cast<double>(e)) continue;
      out[0].data[static_cast<size_t>(next)] = static_cast<double>(static_cast<int64_t>(i) / k);
      out[1].data[i] = static_cast<double>(next++);
    }
    for (int64_t t = first / tile; t * tile < next; ++t) out[2].data[static_cast<size_t>(t)] = static_cast<double>(e);
    next = (next + tile - 1) / tile * tile;
  }
}

}  // namespace hierarchos::ops
