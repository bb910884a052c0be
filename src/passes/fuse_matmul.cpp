// Folds what stands around a matrix product into its prologue and epilogue.
#include <algorithm>
#include <iterator>

#include "ops/matmul/matmul/matmul.h"
#include "ops/pointwise/pointwise.h"
#include "passes/passes.h"

namespace hierarchos {
namespace {

// The operation of a pointwise node that is one instruction over its operands in order; nullopt otherwise.
std::optional<PointwiseOp> single_instruction(const Node& node) {
  if (node.op != &ops::pointwise_def() || node.attrs.has("straight")) return std::nullopt;
  const auto expr = PointwiseExpr::parse(node.attrs.s("expr"), static_cast<int>(node.inputs.size()));
  if (expr.code.size() != 1 || expr.results.size() != 1 || expr.results[0] != expr.inputs) return std::nullopt;
  const PointwiseInstr& instr = expr.code[0];
  const int32_t operands[] = {instr.a, instr.b, instr.c};
  const auto arity = std::min<size_t>(static_cast<size_t>(arity_of(instr.op)), std::size(operands));
  for (size_t i = 0; i < arity; ++i)
    if (operands[i] != static_cast<int32_t>(i)) return std::nullopt;
  return instr.op;
}

const char* activation_of(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::Silu: return "silu";
    case PointwiseOp::Gelu: return "gelu";
    case PointwiseOp::GeluTanh: return "gelu_tanh";
    case PointwiseOp::Relu: return "relu";
    case PointwiseOp::Tanh: return "tanh";
    case PointwiseOp::Sigmoid: return "sigmoid";
    default: return nullptr;
  }
}

class Fuser {
 public:
  Fuser(Graph& graph, Function& f) : f_(f), counts_(read_counts(graph, f)) {}

  void run() {
    for (size_t n = 0; n < f_.nodes.size(); ++n) {
      const auto op = single_instruction(f_.nodes[n]);
      if (!op) continue;
      if (const char* act = activation_of(*op)) fuse_activation(n, act);
      if (*op == PointwiseOp::Mul) fuse_gate(n);
      if (*op == PointwiseOp::Add) fuse_residual(n);
    }
    for (size_t n = 0; n < f_.nodes.size(); ++n)
      if (f_.nodes[n].op == &ops::matmul_def()) fuse_column_scale(n);
    std::erase_if(f_.nodes, [](const Node& node) { return node.op == nullptr; });
    f_.renumber();
  }

 private:
  // The product that makes `v`, if nobody else reads it.
  Node* product(ValueId v) {
    const int32_t p = f_.values[v].producer;
    if (p < 0 || counts_[v] != 1) return nullptr;
    Node& node = f_.nodes[static_cast<size_t>(p)];
    return node.op == &ops::matmul_def() ? &node : nullptr;
  }

  static bool bare_epilogue(const Node& m) {  // nothing after the sum and the bias yet
    return m.attrs.s("act") == "none" && m.attrs.f_or("softcap", 0) == 0 && !m.attrs.i_or("residual", 0) &&
           m.attrs.s("combine") == "sum";
  }

  // Moves the product to the place of node n (all its operands are known there) and gives it n's result.
  void replace(size_t n, Node fused) {
    const std::vector<ValueId> outputs = f_.nodes[n].outputs;
    fused.outputs = outputs;
    f_.nodes[n] = std::move(fused);
    f_.values[outputs[0]].producer = static_cast<int32_t>(n);
    f_.values[outputs[0]].output = 0;
  }

  bool same_type(ValueId a, ValueId b) const { return f_.type_of(a) == f_.type_of(b); }

  void fuse_activation(size_t n, const char* act) {
    const ValueId in = f_.nodes[n].inputs[0];
    Node* m = product(in);
    if (!m || !bare_epilogue(*m) || !same_type(in, f_.nodes[n].outputs[0])) return;
    Node fused = *m;
    m->op = nullptr;
    fused.attrs.set("act", std::string(act));
    replace(n, std::move(fused));
  }

  // (x · scale)·wᵀ where scale has one number a column: the prologue's norm weight.
  void fuse_column_scale(size_t n) {
    Node& m = f_.nodes[n];
    if (m.attrs.i_or("norm_weight", 0)) return;
    const ValueId x = m.inputs[0];
    const int32_t p = f_.values[x].producer;
    if (p < 0 || counts_[x] != 1) return;
    Node& scale = f_.nodes[static_cast<size_t>(p)];
    if (scale.op == nullptr || single_instruction(scale) != PointwiseOp::Mul) return;
    for (size_t side : {0u, 1u}) {
      const ValueId full = scale.inputs[side], column = scale.inputs[1 - side];
      if (!same_type(full, x) || f_.type_of(column).shape != Shape{f_.type_of(x).shape.back()} || f_.type_of(column).dtype != f_.type_of(x).dtype)
        continue;
      // The product of the two roundings is the same: x · scale is rounded to its type when it is loaded, too.
      if (f_.type_of(x).dtype != DType::F32) return;
      const auto at = ops::matmul_operands(m.attrs);
      const size_t place = static_cast<size_t>(std::max({at.w1, at.w2, at.row_scale})) + 1;
      m.inputs[0] = full;
      m.inputs.insert(m.inputs.begin() + static_cast<int64_t>(place), column);
      m.attrs.set("norm_weight", int64_t{1}).set("norm_offset", 0.0);
      scale.op = nullptr;
      return;
    }
  }

  // act(x·w1ᵀ + b1) · (x·w2ᵀ + b2)
  void fuse_gate(size_t n) {
    const std::vector<ValueId> inputs = f_.nodes[n].inputs;
    if (inputs[0] == inputs[1] || !same_type(inputs[0], inputs[1])) return;
    for (int side = 0; side < 2; ++side) {
      Node* gate = product(inputs[static_cast<size_t>(side)]);
      Node* up = product(inputs[static_cast<size_t>(1 - side)]);
      if (!gate || !up || !bare_epilogue(*up) || gate->attrs.s("combine") != "sum" || gate->attrs.s("act") == "none" ||
          gate->attrs.i_or("residual", 0) || gate->attrs.f_or("softcap", 0) != 0)
        continue;
      const auto plain = [](const Node& m) {
        return m.attrs.i_or("products", 1) == 1 && !m.attrs.i_or("row_scale", 0) && !m.attrs.i_or("norm_weight", 0);
      };
      if (!plain(*gate) || !plain(*up) || gate->inputs[0] != up->inputs[0]) continue;
      const auto g = ops::matmul_operands(gate->attrs), u = ops::matmul_operands(up->attrs);
      if ((g.bias < 0) != (u.bias < 0)) continue;
      if (!same_type(gate->inputs[1], up->inputs[1])) continue;
      Node fused = *gate;
      fused.inputs = {gate->inputs[0], gate->inputs[1], up->inputs[0], up->inputs[1]};
      fused.attrs.set("products", int64_t{2}).set("combine", std::string("gate")).set("alpha2", up->attrs.f_or("alpha", 1));
      if (g.bias >= 0) {
        fused.inputs.push_back(gate->inputs[static_cast<size_t>(g.bias)]);
        fused.inputs.push_back(up->inputs[static_cast<size_t>(u.bias)]);
        fused.attrs.set("bias2", int64_t{1});
      }
      gate->op = nullptr;
      up->op = nullptr;
      replace(n, std::move(fused));
      return;
    }
  }

  void fuse_residual(size_t n) {
    const std::vector<ValueId> inputs = f_.nodes[n].inputs;
    if (inputs[0] == inputs[1] || !same_type(inputs[0], inputs[1]) || !same_type(inputs[0], f_.nodes[n].outputs[0])) return;
    for (size_t side : {1u, 0u}) {
      Node* m = product(inputs[side]);
      if (!m || m->attrs.i_or("residual", 0)) continue;
      // The other operand must be known where the product will stand, which is here; nothing to check.
      Node fused = *m;
      fused.inputs.push_back(inputs[1 - side]);
      fused.attrs.set("residual", int64_t{1});
      m->op = nullptr;
      replace(n, std::move(fused));
      return;
    }
  }

  Function& f_;
  std::vector<int> counts_;
};

}  // namespace

void fuse_matmul(Graph& graph) {
  for (FunctionId id : reachable(graph)) Fuser(graph, graph.function(id)).run();
}

}  // namespace hierarchos
