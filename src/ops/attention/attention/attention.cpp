#include "ops/attention/attention/attention.h"

#include "graph/vjp.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

const Type* operand(std::span<const Type> inputs, int at) {
  return at < 0 ? nullptr : &inputs[static_cast<size_t>(at)];
}

bool computable(const Type& t) {
  return t.plain() && (t.dtype == DType::F32 || t.dtype == DType::F16 || t.dtype == DType::BF16);
}

void want(const InferContext& c, const Type* t, const char* name, DType dtype, const Shape& shape) {
  if (t && (t->dtype != dtype || t->shape != shape || !t->plain()))
    c.fail("{} must be {}{}, it is {}", name, name_of(dtype), shape.to_string(), t->to_string());
}

// Checks the forward's operands; `inputs` begins with q.
void check(const InferContext& c, std::span<const Type> inputs, const AttentionOperands& at) {
  if (static_cast<int>(inputs.size()) != at.count)
    c.fail("the attributes ask for {} forward operands, there are {}", at.count, inputs.size());
  const Type &q = inputs[0], &k = inputs[1], &v = inputs[2];
  const char* names[] = {"q", "k", "v"};
  for (size_t i = 0; i < 3; ++i)
    if (inputs[i].shape.rank() != 3 || !computable(inputs[i]))
      c.fail("{} must be f32, f16 or bf16 [rows, heads, channels], it is {}", names[i], inputs[i].to_string());
  const int64_t tokens = q.shape[0], heads = q.shape[1], keys = k.shape[0], kv_heads = k.shape[1];
  if (k.shape[2] != q.shape[2]) c.fail("heads of q have {} channels, those of k {}", q.shape[2], k.shape[2]);
  if (v.shape[0] != keys || v.shape[1] != kv_heads)
    c.fail("k is {}, v is {}: rows and heads must agree", k.to_string(), v.to_string());
  if (kv_heads < 1 || heads % kv_heads != 0) c.fail("{} query heads are no multiple of {} key heads", heads, kv_heads);
  want(c, &inputs[3], "ranges", DType::I32, Shape{tokens, 2});
  want(c, operand(inputs, at.segment), "segment", DType::I32, Shape{tokens});
  want(c, operand(inputs, at.positions), "positions", DType::I32, Shape{tokens});
  want(c, operand(inputs, at.alibi), "alibi", DType::F32, Shape{heads});
  want(c, operand(inputs, at.sinks), "sinks", DType::F32, Shape{heads});
  int64_t logical_keys = keys;
  if (const Type* table = operand(inputs, at.block_table)) {
    if (table->dtype != DType::I32 || table->shape.rank() != 2)
      c.fail("block_table must be i32 [segments, blocks], it is {}", table->to_string());
    if (at.segment < 0) c.fail("a block table needs the segment of each query");
    if (c.attrs.i_or("page", 0) < 1) c.fail("a block table needs a page of at least one row");
    logical_keys = table->shape[1] * c.attrs.i("page");
  }
  if ((at.alibi >= 0 || at.bias_table >= 0) && at.positions < 0) c.fail("alibi and bias_table need positions");
  if (const Type* table = operand(inputs, at.bias_table))
    if (table->dtype != DType::F32 || table->shape.rank() != 2 || (table->shape[0] != 1 && table->shape[0] != heads) ||
        table->shape[1] < 1)
      c.fail("bias_table must be f32 [1 or {}, N ≥ 1], it is {}", heads, table->to_string());
  if (const Type* bias = operand(inputs, at.dense_bias))
    if (bias->dtype != DType::F32 || bias->shape.rank() != 3 || (bias->shape[0] != 1 && bias->shape[0] != heads) ||
        bias->shape[1] != tokens || bias->shape[2] != logical_keys)
      c.fail("dense_bias must be f32 [1 or {}, {}, {}], it is {}", heads, tokens, logical_keys, bias->to_string());
  if (c.attrs.f_or("softcap", 0) < 0) c.fail("softcap must not be negative");

  const std::string& mode = c.attrs.s("keys");
  const Type* list = operand(inputs, at.key_list);
  if (mode == "range") {
    if (list) c.fail("keys = \"range\" takes no key_list");
    return;
  }
  if (mode != "blocks" && mode != "indices") c.fail("keys is \"range\", \"blocks\" or \"indices\", not \"{}\"", mode);
  if (!list) c.fail("keys = \"{}\" needs a key_list", mode);
  int64_t rows = tokens;
  if (mode == "blocks") {
    const int64_t block = c.attrs.i_or("query_block", 0);
    if (block < 1 || c.attrs.i_or("key_block", 0) < 1)
      c.fail("keys = \"blocks\" needs query_block and key_block of at least 1");
    rows = (tokens + block - 1) / block;
  }
  if (list->dtype != DType::I32 || list->shape.rank() != 2 || list->shape[0] != rows)
    c.fail("key_list must be i32 [{}, n], it is {}", rows, list->to_string());
}

std::vector<Type> infer(const InferContext& c) {
  check(c, c.inputs, attention_operands(c.attrs));
  const Shape &q = c.inputs[0].shape, &v = c.inputs[2].shape;
  return {Type(c.inputs[0].dtype, Shape{q[0], q[1], v[2]}), Type(DType::F32, Shape{q[0], q[1]})};
}

std::vector<Type> infer_backward(const InferContext& c) {
  const AttentionOperands at = attention_operands(c.attrs);
  if (c.inputs.size() < 3) c.fail("takes dout, out, lse and the forward's operands");
  const auto forward = c.inputs.subspan(3);
  check(c, forward, at);
  if (at.block_table >= 0) c.fail("the gradient through a block table is not supported; training attends to rows");
  const Shape &q = forward[0].shape, &v = forward[2].shape;
  const Shape out{q[0], q[1], v[2]};
  for (size_t i = 0; i < 2; ++i)
    if (c.inputs[i].shape != out || !computable(c.inputs[i]))
      c.fail("{} must be floating {}, it is {}", i == 0 ? "dout" : "out", out.to_string(), c.inputs[i].to_string());
  want(c, &c.inputs[2], "lse", DType::F32, Shape{q[0], q[1]});
  std::vector<Type> grads;
  for (size_t i = 0; i < 3; ++i) grads.push_back(Type(forward[i].dtype, forward[i].shape));
  for (int i : {at.bias_table, at.dense_bias, at.sinks})
    if (i >= 0) grads.push_back(Type(DType::F32, forward[static_cast<size_t>(i)].shape));
  return grads;
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  std::vector<std::optional<Value>> grads(c.inputs.size());
  if (c.grads[1])
    throw UnsupportedError("attention: the gradient of its log-sum-exp is not supported; the loss may read `out` only");
  if (!c.grads[0]) return grads;
  const AttentionOperands at = attention_operands(c.attrs);
  if (at.block_table >= 0)
    throw UnsupportedError(
        "attention: the gradient through a block table is not supported; train without a paged cache");
  std::vector<Value> inputs = {*c.grads[0], c.outputs[0], c.outputs[1]};
  inputs.insert(inputs.end(), c.inputs.begin(), c.inputs.end());
  const std::vector<Value> made = c.graph.emit(attention_backward_def(), std::move(inputs), c.attrs);
  size_t next = 0;
  for (int i : {at.q, at.k, at.v, at.bias_table, at.dense_bias, at.sinks})
    if (i >= 0) grads[static_cast<size_t>(i)] = made[next++];
  return grads;
}

// Every query is taken to see every key that it may name: ranges are only known when the node runs.
double scores(const Attrs& attrs, std::span<const Type> inputs) {
  const AttentionOperands at = attention_operands(attrs);
  auto keys = static_cast<double>(inputs[1].shape[0]);
  if (const Type* table = operand(inputs, at.block_table))
    keys = std::min(keys, static_cast<double>(table->shape[1] * attrs.i("page")));
  if (const Type* list = operand(inputs, at.key_list))
    keys = std::min(keys, static_cast<double>(list->shape[1]) *
                              (attrs.s("keys") == "blocks" ? static_cast<double>(attrs.i("key_block")) : 1.0));
  return keys * static_cast<double>(inputs[0].shape[0] * inputs[0].shape[1]);
}

double bytes_of(std::span<const Type> inputs, std::span<const Type> outputs) {
  double bytes = 0;
  for (const Type& t : inputs) bytes += static_cast<double>(t.bytes());
  for (const Type& t : outputs) bytes += static_cast<double>(t.bytes());
  return bytes;
}

Cost cost(const Attrs& attrs, std::span<const Type> inputs, std::span<const Type> outputs) {
  const auto channels = static_cast<double>(inputs[0].shape[2] + inputs[2].shape[2]);
  return {2 * scores(attrs, inputs) * channels, bytes_of(inputs, outputs)};
}

Cost cost_backward(const Attrs& attrs, std::span<const Type> inputs, std::span<const Type> outputs) {
  const auto forward = inputs.subspan(3);
  const auto d = static_cast<double>(forward[0].shape[2]), dv = static_cast<double>(forward[2].shape[2]);
  return {2 * scores(attrs, forward) * (3 * d + 2 * dv), bytes_of(inputs, outputs)};
}

bool contiguous_channels(const Shape& shape, std::span<const int64_t> strides) {
  return shape[2] <= 1 || strides[2] == 1;
}

bool accepts_strides(const Attrs&, int input, const Shape& shape, std::span<const int64_t> strides) {
  return input <= 2 && contiguous_channels(shape, strides);
}

bool accepts_strides_backward(const Attrs&, int input, const Shape& shape, std::span<const int64_t> strides) {
  return input >= 3 && input <= 5 && contiguous_channels(shape, strides);
}

Value as(Value x, DType dtype) { return x.dtype() == dtype || !is_floating(x.dtype()) ? x : cast(x, dtype); }

}  // namespace

AttentionOperands attention_operands(const Attrs& attrs) {
  AttentionOperands at;
  int next = 4;
  const auto optional = [&](int& index, const char* name) {
    if (attrs.i_or(name, 0)) index = next++;
  };
  optional(at.segment, "segment");
  optional(at.block_table, "block_table");
  optional(at.positions, "positions");
  optional(at.alibi, "alibi");
  optional(at.bias_table, "bias_table");
  optional(at.dense_bias, "dense_bias");
  optional(at.sinks, "sinks");
  optional(at.key_list, "key_list");
  at.count = next;
  return at;
}

AttentionResult attention(const AttentionSpec& spec) {
  Graph& graph = spec.q.graph();
  // The precision policy is for q, k and v alone: biases, sinks and slopes stay fp32, which is why the node itself
  // follows its operands. A paged cache has the type that its owner gave it.
  std::vector<Value> inputs = {spec.q, spec.k, spec.v, spec.ranges};
  if (const DType compute = graph.compute_type(); compute != DType::F32) {
    inputs[0] = as(inputs[0], compute);
    for (size_t i = 1; i <= 2 && !spec.block_table; ++i) inputs[i] = as(inputs[i], compute);
  }
  Attrs attrs{{"scale", spec.scale}, {"softcap", spec.softcap}, {"keys", spec.keys}};
  const auto optional = [&](const std::optional<Value>& value, const char* name) {
    if (!value) return;
    attrs.set(name, int64_t{1});
    inputs.push_back(as(*value, DType::F32));
  };
  optional(spec.segment, "segment");
  optional(spec.block_table, "block_table");
  optional(spec.positions, "positions");
  optional(spec.alibi, "alibi");
  optional(spec.bias_table, "bias_table");
  optional(spec.dense_bias, "dense_bias");
  optional(spec.sinks, "sinks");
  optional(spec.key_list, "key_list");
  attrs.set("page", spec.block_table ? spec.page : int64_t{0});
  attrs.set("query_block", spec.query_block).set("key_block", spec.key_block);
  const std::vector<Value> results = graph.emit(attention_def(), std::move(inputs), std::move(attrs));
  return {results[0], results[1]};
}

const OpDef& attention_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "attention";
    d.infer = infer;
    d.vjp = vjp;
    d.accepts_strides = accepts_strides;
    d.cost = cost;
    return d;
  }();
  return def;
}

const OpDef& attention_backward_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "attention_backward";
    d.infer = infer_backward;
    d.accepts_strides = accepts_strides_backward;
    d.cost = cost_backward;
    return d;
  }();
  return def;
}

}  // namespace hierarchos::ops
