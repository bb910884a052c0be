#include "ops/index/scatter_add_rows/scatter_add_rows.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/index/gather/gather.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 4, 4, "accumulator, rows, ids and order");
  const Type &accumulator = c.inputs[0], &rows = c.inputs[1];
  if (accumulator.dtype != DType::F32 || !accumulator.plain() || accumulator.shape.rank() < 1)
    c.fail("accumulator must be f32 [V, …], it is {}", accumulator.to_string());
  expect_floating(c, 1, "rows");
  Shape wanted = accumulator.shape;
  wanted[0] = rows.shape.rank() > 0 ? rows.shape[0] : 0;
  if (rows.shape != wanted) c.fail("rows must be {} for any T, they are {}", wanted.to_string(), rows.to_string());
  expect(c, 2, "ids", DType::I32, Shape{rows.shape[0]});
  expect(c, 3, "order", DType::I32, Shape{rows.shape[0]});
  return {Type(DType::F32, accumulator.shape)};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> made(4);
  if (!c.grads[0]) return made;
  made[0] = *c.grads[0];
  if (!c.wanted[1]) return made;
  Value ids = c.inputs[2];
  // Rows that were skipped get zero: so does what gather finds outside the table.
  if (const int64_t padding = c.attrs.i_or("padding_idx", -1); padding >= 0) {
    const auto scalar = [&](double v) { return full(c.graph, Shape{}, v, DType::I32); };
    ids = select(binary(PointwiseOp::Eq, ids, scalar(static_cast<double>(padding))), scalar(-1), ids);
  }
  made[1] = cast(gather(*c.grads[0], ids, c.inputs[3]), c.inputs[1].dtype());
  return made;
}

// Rows of the accumulator that are touched count, not all of it.
Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type>) {
  const auto elements = static_cast<double>(inputs[1].shape.elements());
  return {elements, bytes_moved(inputs.subspan(1), {}) + 8 * elements};
}

}  // namespace

Value scatter_add_rows(Value accumulator, Value rows, Value ids, Value order, int64_t padding_idx) {
  return accumulator.graph().emit1(scatter_add_rows_def(), {accumulator, rows, ids, order}, {{"padding_idx", padding_idx}});
}

const OpDef& scatter_add_rows_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "scatter_add_rows";
    d.infer = infer;
    d.vjp = vjp;
    d.updates = {{0, 0}};
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
