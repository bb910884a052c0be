#include "ops/moe/grouped_matmul/grouped_matmul.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/operator.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

void expect_tiles(const InferContext& c, size_t input, int64_t rows) {
  const int64_t tile = c.attrs.i("tile");
  if (tile < 1 || rows % tile != 0) c.fail("{} rows in tiles of {}", rows, tile);
  expect(c, input, "tile_expert", DType::I32, {rows / tile});
}

int64_t experts_of(const InferContext& c) {
  const int64_t experts = c.attrs.i("experts");
  if (experts < 1) c.fail("{} experts", experts);
  return experts;
}

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 3, 3, "x, w and tile_expert");
  expect_floating(c, 0, "x");
  const Type& type = c.inputs[1];
  const Shape &x = c.inputs[0].shape, &w = type.shape;
  const int64_t experts = experts_of(c);
  const bool transposed = c.attrs.i_or("transposed", 0) != 0;
  if (type.layout != kRowMajor || (type.storage == Storage::Plain && !computable(type.dtype)))
    c.fail("w must be f32, f16, bf16 or block-quantised, it is {}", type.to_string());
  if (transposed && type.storage != Storage::Plain) c.fail("a transposed w must be plain, it is {}", type.to_string());
  if (x.rank() != 2 || w.rank() != 2) c.fail("x must be [R, K] and w a matrix");
  if (w[0] % experts != 0) c.fail("w has {} rows for {} experts", w[0], experts);
  const int64_t k = transposed ? w[0] / experts : w[1];
  if (x[1] != k) c.fail("x has K = {}, w has {}", x[1], k);
  expect_tiles(c, 2, x[0]);
  return {Type(c.inputs[0].dtype, {x[0], transposed ? w[1] : w[0] / experts})};
}

std::vector<Type> infer_backward(const InferContext& c) {
  expect_inputs(c, 3, 3, "dy, x and tile_expert");
  expect_floating(c, 0, "dy");
  expect_floating(c, 1, "x");
  const Shape &dy = c.inputs[0].shape, &x = c.inputs[1].shape;
  if (dy.rank() != 2 || x.rank() != 2 || dy[0] != x[0]) c.fail("dy must be [R, N] and x [R, K]");
  expect_tiles(c, 2, x[0]);
  return {Type(DType::F32, {experts_of(c) * dy[1], x[1]})};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> made(3);
  if (!c.grads[0]) return made;
  GroupedMatmulSpec back;
  back.x = *c.grads[0];
  back.w = c.inputs[1];
  back.tile_expert = c.inputs[2];
  back.tile = c.attrs.i("tile");
  back.experts = c.attrs.i("experts");
  back.transposed = c.attrs.i_or("transposed", 0) == 0;
  if (c.wanted[0]) made[0] = grouped_matmul(back);
  if (!c.wanted[1]) return made;
  // dw of the transposed product is x ⊗ dy.
  const Value first = back.transposed ? back.x : c.inputs[0], second = back.transposed ? c.inputs[0] : back.x;
  const Value dw = c.graph.emit1(grouped_matmul_backward_def(), {first, second, back.tile_expert},
                                 {{"tile", back.tile}, {"experts", back.experts}});
  made[1] = cast(dw, back.w.dtype());
  return made;
}

Cost cost(const Attrs& attrs, std::span<const Type> in, std::span<const Type> out) {
  const auto rows = static_cast<double>(out[0].shape[0]);
  const double matrix = static_cast<double>(in[1].shape.elements()) / static_cast<double>(attrs.i("experts"));
  return {2 * rows * matrix, bytes_moved(in, out)};
}

Cost cost_backward(const Attrs&, std::span<const Type> in, std::span<const Type> out) {
  return {2 * static_cast<double>(in[0].shape.elements()) * static_cast<double>(in[1].shape[1]), bytes_moved(in, out)};
}

}  // namespace

Value grouped_matmul(const GroupedMatmulSpec& s) {
  return s.x.graph().emit1(grouped_matmul_def(), {s.x, s.w, s.tile_expert},
                           {{"tile", s.tile}, {"experts", s.experts}, {"transposed", int64_t{s.transposed}}});
}

const OpDef& grouped_matmul_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "grouped_matmul";
    d.precision = Precision::Compute;
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
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
    d.cost = cost_backward;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
