#include "ops/scan/linear_scan/linear_scan.h"

#include "graph/vjp.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

struct Sizes {
  int64_t tokens, heads, keys, values, segments;
};

// Checks the forward's operands; `inputs` begins with the state.
Sizes check(const InferContext& c, std::span<const Type> inputs) {
  const bool uw = c.attrs.i_or("uw", 0) != 0;
  if (inputs.size() != (uw ? 8u : 6u)) c.fail("takes state, r, k, v, log_decay, offsets and, together, u and w");
  const Type &state = inputs[0], &r = inputs[1], &k = inputs[2], &v = inputs[3], &decay = inputs[4],
             &offsets = inputs[5];
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i != 5 && (!inputs[i].plain() || !is_floating(inputs[i].dtype)))
      c.fail("operand {} must be plain and floating, it is {}", i, inputs[i].to_string());
  if (r.shape.rank() != 3) c.fail("r must be [T, H, Nk], it is {}", r.to_string());
  if (k.shape != r.shape) c.fail("k must be {}, it is {}", r.shape.to_string(), k.to_string());
  const Sizes n{r.shape[0], r.shape[1], r.shape[2], v.shape.rank() == 3 ? v.shape[2] : 0,
                offsets.shape.rank() == 1 ? offsets.shape[0] - 1 : -1};
  if (v.shape.rank() != 3 || v.shape[0] != n.tokens || v.shape[1] != n.heads)
    c.fail("v must be [{}, {}, Nv], it is {}", n.tokens, n.heads, v.to_string());
  if (decay.dtype != DType::F32 || (decay.shape != r.shape && decay.shape != Shape{n.tokens, n.heads}))
    c.fail("log_decay must be f32 {} or [{}, {}], it is {}", r.shape.to_string(), n.tokens, n.heads, decay.to_string());
  if (offsets.dtype != DType::I32 || n.segments < 0)
    c.fail("offsets must be i32 [segments + 1], it is {}", offsets.to_string());
  const Shape states{n.segments, n.heads, n.values, n.keys};
  if (state.dtype != DType::F32 || state.shape != states)
    c.fail("state must be f32 {}, it is {}", states.to_string(), state.to_string());
  for (size_t i = 6; i < inputs.size(); ++i)
    if (inputs[i].shape != r.shape)
      c.fail("{} must be {}, it is {}", i == 6 ? "u" : "w", r.shape.to_string(), inputs[i].to_string());
  return n;
}

std::vector<Type> infer(const InferContext& c) {
  check(c, c.inputs);
  return {Type(c.inputs[3].dtype, c.inputs[3].shape), Type(DType::F32, c.inputs[0].shape)};
}

std::vector<Type> infer_backward(const InferContext& c) {
  if (c.inputs.size() < 2) c.fail("takes dy, dstate' and the forward's operands");
  const auto forward = c.inputs.subspan(2);
  check(c, forward);
  if (c.inputs[0].shape != forward[3].shape || !is_floating(c.inputs[0].dtype))
    c.fail("dy must be floating {}, it is {}", forward[3].shape.to_string(), c.inputs[0].to_string());
  if (c.inputs[1].shape != forward[0].shape || c.inputs[1].dtype != DType::F32)
    c.fail("dstate' must be f32 {}, it is {}", forward[0].shape.to_string(), c.inputs[1].to_string());
  std::vector<Type> grads;
  for (size_t i : {0u, 1u, 2u, 3u, 4u, 6u, 7u})
    if (i < forward.size()) grads.push_back(Type(forward[i].dtype, forward[i].shape));
  return grads;
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> grads(c.inputs.size());
  if (!c.grads[0] && !c.grads[1]) return grads;
  const auto given = [&](size_t i) { return c.grads[i] ? *c.grads[i] : zeros(c.graph, c.outputs[i].type()); };
  std::vector<Value> inputs = {given(0), given(1)};
  inputs.insert(inputs.end(), c.inputs.begin(), c.inputs.end());
  const std::vector<Value> made = c.graph.emit(linear_scan_backward_def(), std::move(inputs), c.attrs);
  size_t next = 0;
  for (size_t i : {0u, 1u, 2u, 3u, 4u, 6u, 7u})
    if (i < grads.size()) grads[i] = made[next++];
  return grads;
}

double state_elements(std::span<const Type> forward) {  // touched over the whole scan
  return static_cast<double>(forward[1].shape.elements()) * static_cast<double>(forward[3].shape[2]);
}

double bytes_of(std::span<const Type> inputs, std::span<const Type> outputs) {
  double bytes = 0;
  for (const Type& t : inputs) bytes += static_cast<double>(t.bytes());
  for (const Type& t : outputs) bytes += static_cast<double>(t.bytes());
  return bytes;
}

Cost cost(const Attrs& attrs, std::span<const Type> inputs, std::span<const Type> outputs) {
  return {state_elements(inputs) * (attrs.i_or("uw", 0) ? 9 : 5), bytes_of(inputs, outputs)};
}

Cost cost_backward(const Attrs& attrs, std::span<const Type> inputs, std::span<const Type> outputs) {
  // The states once more, then the gradient's own products.
  return {state_elements(inputs.subspan(2)) * (attrs.i_or("uw", 0) ? 27 : 15), bytes_of(inputs, outputs)};
}

OpDef make(const char* name) {
  OpDef d;
  d.name = name;
  d.precision = Precision::Full;
  return d;
}

}  // namespace

LinearScanResult linear_scan(const LinearScanSpec& spec) {
  if (spec.u.has_value() != spec.w.has_value()) throw ShapeError("linear_scan: u and w come together or not at all");
  std::vector<Value> inputs = {spec.state, spec.r, spec.k, spec.v, spec.log_decay, spec.offsets};
  Attrs attrs;
  if (spec.u) {
    attrs.set("uw", int64_t{1});
    inputs.push_back(*spec.u);
    inputs.push_back(*spec.w);
  }
  const std::vector<Value> results = spec.r.graph().emit(linear_scan_def(), std::move(inputs), std::move(attrs));
  return {results[0], results[1]};
}

const OpDef& linear_scan_def() {
  static const OpDef def = [] {
    OpDef d = make("linear_scan");
    d.infer = infer;
    d.vjp = vjp;
    d.cost = cost;
    return d;
  }();
  return def;
}

const OpDef& linear_scan_backward_def() {
  static const OpDef def = [] {
    OpDef d = make("linear_scan_backward");
    d.infer = infer_backward;
    d.cost = cost_backward;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
