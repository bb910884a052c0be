#include "ops/reduce/reduce/reduce.h"

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "one operand");
  expect_floating(c, 0, "x");
  const std::string& kind = c.attrs.s("kind");
  if (kind != "sum" && kind != "mean" && kind != "max") c.fail("there is no reduction \"{}\"", kind);
  const Shape& from = c.inputs[0].shape;
  const int64_t begin = c.attrs.i("begin"), end = c.attrs.i("end");
  if (begin < 0 || begin > end || end > from.rank())
    c.fail("axes [{}, {}) of a value with {} axes", begin, end, from.rank());
  std::vector<int64_t> dims;
  for (int a = 0; a < from.rank(); ++a)
    if (a < begin || a >= end) dims.push_back(from[a]);
  return {Type(c.attrs.i_or("out_f32", 0) ? DType::F32 : c.inputs[0].dtype, Shape(dims))};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  const std::string& kind = c.attrs.s("kind");
  if (kind == "max") return {std::nullopt};
  const Value x = c.inputs[0];
  // A copy: x.shape() refers into the function's values, which grow as nodes are emitted.
  const Shape whole = x.shape();
  Shape kept = whole;
  int64_t reduced = 1;
  for (int a = static_cast<int>(c.attrs.i("begin")); a < c.attrs.i("end"); ++a) {
    reduced *= kept[a];
    kept[a] = 1;
  }
  Value dy = *c.grads[0];
  if (kind == "mean" && reduced > 0) dy = mul(dy, 1.0 / static_cast<double>(reduced));
  return {cast(expand(reshape(dy, kept), whole), x.dtype())};
}

Cost cost(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs, outputs)};
}

Value emit(const char* kind, Value x, int begin, int end) {
  const int rank = x.shape().rank();
  if (begin < 0) begin += rank;
  if (end < 0) end += rank;
  return x.graph().emit1(reduce_def(), {x},
                         {{"kind", std::string(kind)}, {"begin", int64_t{begin}}, {"end", int64_t{end}}});
}

}  // namespace

Value sum(Value x, int begin, int end) { return emit("sum", x, begin, end); }
Value sum(Value x) { return emit("sum", x, 0, x.shape().rank()); }
Value mean(Value x, int begin, int end) { return emit("mean", x, begin, end); }
Value max(Value x, int begin, int end) { return emit("max", x, begin, end); }

const OpDef& reduce_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "reduce";
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
