#include "ops/views/views.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

using Grads = std::vector<std::optional<Value>>;

void expect_view(const InferContext& c) {
  expect_inputs(c, 1, 1, "one operand");
  if (!c.inputs[0].plain()) c.fail("{} is no plain tensor: it has no views", c.inputs[0].to_string());
}

std::vector<Type> infer_reshape(const InferContext& c) {
  expect_view(c);
  const Shape shape(c.attrs.ints("shape"));
  if (shape.elements() != c.inputs[0].shape.elements())
    c.fail("{} elements do not fit shape {}", c.inputs[0].shape.elements(), shape.to_string());
  return {Type(c.inputs[0].dtype, shape)};
}

std::vector<Type> infer_permute(const InferContext& c) {
  expect_view(c);
  const Shape& from = c.inputs[0].shape;
  const auto& axes = c.attrs.ints("axes");
  std::vector<int64_t> sorted = axes, all(static_cast<size_t>(from.rank()));
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) c.fail("axes {} are no permutation of {} axes", fmt::join(axes, ", "), from.rank());
  Shape shape = from;
  for (size_t a = 0; a < axes.size(); ++a) shape[static_cast<int>(a)] = from[static_cast<int>(axes[a])];
  return {Type(c.inputs[0].dtype, shape)};
}

std::vector<Type> infer_slice(const InferContext& c) {
  expect_view(c);
  Shape shape = c.inputs[0].shape;
  const int64_t axis = c.attrs.i("axis"), begin = c.attrs.i("begin"), end = c.attrs.i("end");
  if (axis < 0 || axis >= shape.rank()) c.fail("axis {} of a value with {} axes", axis, shape.rank());
  if (begin < 0 || begin > end || end > shape[static_cast<int>(axis)])
    c.fail("[{}, {}) is no part of axis {} with extent {}", begin, end, axis, shape[static_cast<int>(axis)]);
  shape[static_cast<int>(axis)] = end - begin;
  return {Type(c.inputs[0].dtype, shape)};
}

std::vector<Type> infer_expand(const InferContext& c) {
  expect_view(c);
  const Shape& from = c.inputs[0].shape;
  const Shape shape(c.attrs.ints("shape"));
  const int lead = shape.rank() - from.rank();
  bool fits = lead >= 0;
  for (int a = 0; fits && a < from.rank(); ++a) fits = from[a] == 1 || from[a] == shape[a + lead];
  if (!fits) c.fail("{} does not expand to {}", from.to_string(), shape.to_string());
  return {Type(c.inputs[0].dtype, shape)};
}

std::vector<Type> infer_concat(const InferContext& c) {
  expect_inputs(c, 1, 64, "1 to 64 operands");
  Shape shape = c.inputs[0].shape;
  const int64_t axis = c.attrs.i("axis");
  if (axis < 0 || axis >= shape.rank()) c.fail("axis {} of values with {} axes", axis, shape.rank());
  const int at = static_cast<int>(axis);
  shape[at] = 0;
  for (const Type& t : c.inputs) {
    if (!t.plain()) c.fail("operands must be plain, one is {}", t.to_string());
    if (t.dtype != c.inputs[0].dtype) c.fail("operands of type {} and {}", name_of(c.inputs[0].dtype), name_of(t.dtype));
    bool fits = t.shape.rank() == shape.rank();
    for (int a = 0; fits && a < shape.rank(); ++a) fits = a == at || t.shape[a] == shape[a];
    if (!fits)
      c.fail("{} and {} differ on other axes than {}", c.inputs[0].shape.to_string(), t.shape.to_string(), axis);
    shape[at] += t.shape[at];
  }
  return {Type(c.inputs[0].dtype, shape)};
}

Grads vjp_reshape(VjpContext& c) { return {reshape(*c.grads[0], c.inputs[0].shape())}; }

Grads vjp_permute(VjpContext& c) {
  const auto& axes = c.attrs.ints("axes");
  std::vector<int64_t> inverse(axes.size());
  for (size_t a = 0; a < axes.size(); ++a) inverse[static_cast<size_t>(axes[a])] = static_cast<int64_t>(a);
  return {permute(*c.grads[0], inverse)};
}

Grads vjp_slice(VjpContext& c) {
  const int axis = static_cast<int>(c.attrs.i("axis"));
  const Value dy = *c.grads[0];
  const Shape whole = c.inputs[0].shape();
  std::vector<Value> parts;
  const auto pad = [&](int64_t extent) {
    if (extent == 0) return;
    Shape shape = whole;
    shape[axis] = extent;
    parts.push_back(full(c.graph, shape, 0, dy.dtype()));
  };
  pad(c.attrs.i("begin"));
  parts.push_back(dy);
  pad(whole[axis] - c.attrs.i("end"));
  return {concat(parts, axis)};
}

Grads vjp_expand(VjpContext& c) { return {sum_to(*c.grads[0], c.inputs[0].shape())}; }

Grads vjp_concat(VjpContext& c) {
  const int axis = static_cast<int>(c.attrs.i("axis"));
  Grads grads;
  int64_t begin = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const int64_t extent = c.inputs[i].shape()[axis];
    grads.push_back(c.wanted[i] ? std::optional(slice(*c.grads[0], axis, begin, begin + extent)) : std::nullopt);
    begin += extent;
  }
  return grads;
}

Cost cost_concat(const Attrs&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {0, bytes_moved(inputs, outputs)};
}

bool any_strides(const Attrs&, int, const Shape&, std::span<const int64_t>) { return true; }

OpDef view(const char* name, decltype(OpDef::infer) infer, decltype(OpDef::vjp) vjp) {
  OpDef d;
  d.name = name;
  d.kind = OpKind::View;
  d.infer = infer;
  d.vjp = vjp;
  d.accepts_strides = any_strides;
  d.recompute = true;
  return d;
}

int64_t from_front(Value x, int axis) { return axis < 0 ? axis + x.shape().rank() : axis; }

}  // namespace

Value reshape(Value x, Shape shape) {
  if (shape == x.shape()) return x;
  return x.graph().emit1(reshape_def(), {x}, {{"shape", shape.to_vector()}});
}

Value permute(Value x, const std::vector<int64_t>& axes) {
  return x.graph().emit1(permute_def(), {x}, {{"axes", axes}});
}

Value transpose(Value x) {
  const int rank = x.shape().rank();
  if (rank < 2)
    throw ShapeError(fmt::format("{}: transpose of {}: it has no last two axes", x.graph().scope(), x.shape().to_string()));
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return permute(x, axes);
}

Value slice(Value x, int axis, int64_t begin, int64_t end) {
  const int64_t at = from_front(x, axis);
  if (at >= 0 && at < x.shape().rank() && begin == 0 && end == x.shape()[static_cast<int>(at)]) return x;
  return x.graph().emit1(slice_def(), {x}, {{"axis", at}, {"begin", begin}, {"end", end}});
}

Value expand(Value x, Shape shape) {
  if (shape == x.shape()) return x;
  return x.graph().emit1(expand_def(), {x}, {{"shape", shape.to_vector()}});
}

std::vector<Value> split(Value x, int axis, const std::vector<int64_t>& sizes) {
  const int64_t at = from_front(x, axis), total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (at < 0 || at >= x.shape().rank() || total != x.shape()[static_cast<int>(at)])
    throw ShapeError(fmt::format("{}: parts of {} do not cover axis {} of {}", x.graph().scope(), fmt::join(sizes, " + "), axis,
                                 x.shape().to_string()));
  std::vector<Value> parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    parts.push_back(slice(x, static_cast<int>(at), begin, begin + size));
    begin += size;
  }
  return parts;
}

Value concat(const std::vector<Value>& xs, int axis) {
  if (xs.empty()) throw ShapeError("concat of no values");
  if (xs.size() == 1) return xs[0];
  return xs[0].graph().emit1(concat_def(), xs, {{"axis", from_front(xs[0], axis)}});
}

const OpDef& reshape_def() {
  static const OpDef def = view("reshape", infer_reshape, vjp_reshape);
  return def;
}
const OpDef& permute_def() {
  static const OpDef def = view("permute", infer_permute, vjp_permute);
  return def;
}
const OpDef& slice_def() {
  static const OpDef def = view("slice", infer_slice, vjp_slice);
  return def;
}
const OpDef& expand_def() {
  static const OpDef def = view("expand", infer_expand, vjp_expand);
  return def;
}
const OpDef& concat_def() {
  static const OpDef def = [] {
    OpDef d = view("concat", infer_concat, vjp_concat);
    d.kind = OpKind::Compute;
    d.accepts_strides = nullptr;  // devices copy whole rows: strided operands are made contiguous first
    d.cost = cost_concat;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
