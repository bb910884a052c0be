#include "ops/moe/grouped_matmul/grouped_matmul.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/operator.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

void expect_tiles(const InferContext& c, size_t input, int64_t rows) {
  const int64_t tile = c.attrs.i("tile");
  if (tile < 1 || rows % tile != 0) c.fail("{} rows in tiles of {}", rows, tile);
  expect(c, input, "tile_expert", DType::I32, {rows / tile});
}

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 3, 3, "x, w and tile_expert");
  expect_floating(c, 0, "x");
  const Shape &x = c.inputs[0].shape, &w = c.inputs[1].shape;
  if (x.rank() != 2 || w.rank() != 3) c.fail("x must be [R, K] and w [E, N, K]");
  if (x[1] != w[2]) c.fail("x has K = {}, w has {}", x[1], w[2]);
  expect_tiles(c, 2, x[0]);
  return {Type(c.inputs[0].dtype, {x[0], w[1]})};
}

std::vector<Type> infer_backward(const InferContext& c) {
  expect_inputs(c, 3, 3, "dy, x and tile_expert");
  const Shape &dy = c.inputs[0].shape, &x = c.inputs[1].shape;
  if (dy.rank() != 2 || x.rank() != 2 || dy[0] != x[0]) c.fail("dy must be [R, N] and x [R, K]");
  expect_tiles(c, 2, x[0]);
  return {Type(DType::F32, {c.attrs.i("experts"), dy[1], x[1]})};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> made(3);
  if (!c.grads[0]) return made;
  const int64_t tile = c.attrs.i("tile");
  if (c.wanted[0]) made[0] = grouped_matmul(*c.grads[0], transpose(c.inputs[1]), c.inputs[2], tile);
  if (c.wanted[1])
    made[1] = c.graph.emit1(grouped_matmul_backward_def(), {*c.grads[0], c.inputs[0], c.inputs[2]},
                            {{"tile", tile}, {"experts", c.inputs[1].shape()[0]}});
  return made;
}

Cost cost(const Attrs&, std::span<const Type> in, std::span<const Type> out) {
  const auto rows = static_cast<double>(out[0].shape[0]);
  return {2 * rows * static_cast<double>(in[1].shape[1] * in[1].shape[2]), bytes_moved(in, out)};
}

bool accepts_strides(const Attrs&, int input, const Shape& shape, std::span<const int64_t> strides) {
  return input == 1 && shape.rank() == 3 && (strides[1] == 1 || strides[2] == 1);
}

}  // namespace

Value grouped_matmul(Value x, Value w, Value tile_expert, int64_t tile) {
  return x.graph().emit1(grouped_matmul_def(), {x, w, tile_expert}, {{"tile", tile}});
}

const OpDef& grouped_matmul_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "grouped_matmul";
    d.precision = Precision::Compute;
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
    d.accepts_strides = accepts_strides;
    return d;
  }();
  return def;
}

const OpDef& grouped_matmul_backward_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "grouped_matmul_backward";
    d.precision = Precision::Compute;
    d.infer = infer_backward;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
