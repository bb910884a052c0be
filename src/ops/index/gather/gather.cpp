#include "ops/index/gather/gather.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/index/scatter_add_rows/scatter_add_rows.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 2, 3, "table, ids and perhaps their order");
  const Type &table = c.inputs[0], &ids = c.inputs[1];
  if (table.storage == Storage::Plain && !computable(table.dtype) && table.dtype != DType::I32)
    c.fail("table must be f32, f16, bf16, i32 or block-quantised, it is {}", table.to_string());
  if (table.shape.rank() < 1) c.fail("table has no rows");
  if (table.storage != Storage::Plain && table.shape.rank() != 2)
    c.fail("a block-quantised table must be a matrix, it is {}", table.to_string());
  if (ids.dtype != DType::I32 || ids.shape.rank() != 1 || !ids.plain()) c.fail("ids must be i32 [T], they are {}", ids.to_string());
  if (c.inputs.size() == 3) expect(c, 2, "order", DType::I32, ids.shape);
  Shape shape = table.shape;
  shape[0] = ids.shape[0];
  return {Type(table.dtype, shape)};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> made(c.inputs.size());
  const Type& table = c.inputs[0].type();
  if (!c.wanted[0] || !c.grads[0] || !computable(table)) return made;
  if (c.inputs.size() < 3)
    throw UserError("{}: the gradient of gather needs the order of its ids; pass nn::sorted_order to it", c.graph.scope());
  const Value sums = full(c.graph, table.shape, 0);
  made[0] = cast(scatter_add_rows(sums, *c.grads[0], c.inputs[1], c.inputs[2], c.attrs.i_or("padding_idx", -1)), table.dtype);
  return made;
}

// Rows that are read count, not the whole table.
Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  const auto rows = static_cast<double>(std::max<int64_t>(inputs[0].shape[0], 1));
  const double read = static_cast<double>(inputs[0].bytes()) / rows * static_cast<double>(outputs[0].shape[0]);
  return {0, read + bytes_moved(inputs.subspan(1), outputs)};
}

}  // namespace

Value gather(Value table, Value ids, std::optional<Value> order, int64_t padding_idx) {
  std::vector<Value> operands = {table, ids};
  if (order) operands.push_back(*order);
  return ids.graph().emit1(gather_def(), operands, {{"padding_idx", padding_idx}});
}

const OpDef& gather_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "gather";
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
