// Joins pointwise nodes that run over the same elements into one node with several results.
#include <algorithm>
#include <map>
#include <set>

#include "ops/pointwise/pointwise.h"
#include "passes/passes.h"

namespace hierarchos {
namespace {

// More operands and results than this and a kernel's arguments no longer fit the smallest push constants.
constexpr size_t kMaxOperands = 12;

struct Chain {
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  PointwiseExpr expr;
};

Chain chain_of(const Node& node) {
  return {node.inputs, node.outputs, PointwiseExpr::parse(node.attrs.s("expr"), static_cast<int>(node.inputs.size()))};
}

// producer then consumer, keeping those results of the producer that `kept` says others read.
Chain join(const Chain& producer, const Chain& consumer, const std::set<ValueId>& kept) {
  Chain out;
  out.inputs = producer.inputs;
  for (ValueId v : consumer.inputs)
    if (std::find(producer.outputs.begin(), producer.outputs.end(), v) == producer.outputs.end() &&
        std::find(out.inputs.begin(), out.inputs.end(), v) == out.inputs.end())
      out.inputs.push_back(v);
  const auto total = static_cast<int32_t>(out.inputs.size());
  out.expr.inputs = total;

  const auto append = [&](const Chain& part, const std::vector<int32_t>& inputs) {
    const auto base = total + static_cast<int32_t>(out.expr.code.size());
    const auto map = [&](int32_t r) {
      return r < 0 ? r : r < part.expr.inputs ? inputs[static_cast<size_t>(r)] : base + r - part.expr.inputs;
    };
    for (PointwiseInstr instr : part.expr.code) {
      instr.a = map(instr.a);
      instr.b = map(instr.b);
      instr.c = map(instr.c);
      out.expr.code.push_back(instr);
    }
    std::vector<int32_t> results;
    for (int32_t r : part.expr.results) results.push_back(map(r));
    return results;
  };
  std::vector<int32_t> inputs;
  for (size_t i = 0; i < producer.inputs.size(); ++i) inputs.push_back(static_cast<int32_t>(i));
  const std::vector<int32_t> made = append(producer, inputs);
  inputs.clear();
  for (ValueId v : consumer.inputs) {
    auto from = std::find(producer.outputs.begin(), producer.outputs.end(), v);
    if (from != producer.outputs.end())
      inputs.push_back(made[static_cast<size_t>(from - producer.outputs.begin())]);
    else
      inputs.push_back(static_cast<int32_t>(std::find(out.inputs.begin(), out.inputs.end(), v) - out.inputs.begin()));
  }
  const std::vector<int32_t> results = append(consumer, inputs);
  for (size_t o = 0; o < producer.outputs.size(); ++o)
    if (kept.count(producer.outputs[o])) {
      out.outputs.push_back(producer.outputs[o]);
      out.expr.results.push_back(made[o]);
    }
  out.outputs.insert(out.outputs.end(), consumer.outputs.begin(), consumer.outputs.end());
  out.expr.results.insert(out.expr.results.end(), results.begin(), results.end());
  return out;
}

// Same instruction twice becomes one; instructions that no result needs go.
void simplify(PointwiseExpr& expr) {
  std::vector<PointwiseInstr> code;
  std::vector<int32_t> map(static_cast<size_t>(expr.inputs) + expr.code.size());
  for (int32_t i = 0; i < expr.inputs; ++i) map[static_cast<size_t>(i)] = i;
  for (size_t k = 0; k < expr.code.size(); ++k) {
    PointwiseInstr instr = expr.code[k];
    for (int32_t* r : {&instr.a, &instr.b, &instr.c})
      if (*r >= 0) *r = map[static_cast<size_t>(*r)];
    auto same = std::find_if(code.begin(), code.end(), [&](const PointwiseInstr& o) {
      return o.op == instr.op && o.a == instr.a && o.b == instr.b && o.c == instr.c &&
             (o.value == instr.value || (o.value != o.value && instr.value != instr.value)) &&
             std::signbit(o.value) == std::signbit(instr.value);
    });
    if (same == code.end()) {
      code.push_back(instr);
      same = code.end() - 1;
    }
    map[static_cast<size_t>(expr.inputs) + k] = expr.inputs + static_cast<int32_t>(same - code.begin());
  }
  for (int32_t& r : expr.results) r = map[static_cast<size_t>(r)];

  std::vector<bool> live(static_cast<size_t>(expr.inputs) + code.size(), false);
  for (int32_t r : expr.results) live[static_cast<size_t>(r)] = true;
  for (size_t k = code.size(); k-- > 0;)
    if (live[static_cast<size_t>(expr.inputs) + k])
      for (int32_t r : {code[k].a, code[k].b, code[k].c})
        if (r >= 0) live[static_cast<size_t>(r)] = true;
  expr.code.clear();
  for (size_t k = 0; k < code.size(); ++k) {
    const size_t from = static_cast<size_t>(expr.inputs) + k;
    if (!live[from]) continue;
    PointwiseInstr instr = code[k];
    for (int32_t* r : {&instr.a, &instr.b, &instr.c})
      if (*r >= 0) *r = map[static_cast<size_t>(*r)];
    map[from] = expr.inputs + static_cast<int32_t>(expr.code.size());
    expr.code.push_back(instr);
  }
  for (int32_t& r : expr.results) r = map[static_cast<size_t>(r)];
}

// Operands that the expression no longer reads.
void drop_unread(Chain& chain) {
  std::vector<bool> read(chain.inputs.size(), false);
  const auto mark = [&](int32_t r) {
    if (r >= 0 && r < chain.expr.inputs) read[static_cast<size_t>(r)] = true;
  };
  for (const auto& instr : chain.expr.code) {
    mark(instr.a);
    mark(instr.b);
    mark(instr.c);
  }
  for (int32_t r : chain.expr.results) mark(r);
  std::vector<int32_t> map(chain.inputs.size());
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < read.size(); ++i)
    if (read[i]) {
      map[i] = static_cast<int32_t>(inputs.size());
      inputs.push_back(chain.inputs[i]);
    }
  const int32_t shift = chain.expr.inputs - static_cast<int32_t>(inputs.size());
  if (shift == 0) return;
  const auto renumber = [&](int32_t& r) {
    if (r < 0) return;
    r = r < chain.expr.inputs ? map[static_cast<size_t>(r)] : r - shift;
  };
  for (auto& instr : chain.expr.code) {
    renumber(instr.a);
    renumber(instr.b);
    renumber(instr.c);
  }
  for (int32_t& r : chain.expr.results) renumber(r);
  chain.inputs = std::move(inputs);
  chain.expr.inputs -= shift;
}

class Fuser {
 public:
  Fuser(Graph& graph, Function& f) : graph_(graph), f_(f), taken_over_(values_taken_over(f)) {}

  void run() {
    // From the end, so that a consumer takes in its producers, then theirs.
    for (size_t c = f_.nodes.size(); c-- > 0;)
      while (pointwise(c) && take_in_producer(c)) {
      }
    std::erase_if(f_.nodes, [](const Node& node) { return node.op == nullptr; });
    sort();
    f_.renumber();
  }

 private:
  bool pointwise(size_t n) const { return f_.nodes[n].op == &ops::pointwise_def(); }

  const Shape& shape_of(size_t n) const { return f_.type_of(f_.nodes[n].outputs[0]).shape; }

  // Whether node `to` depends on `from` other than through the value being fused (direct reads by `to` itself).
  bool depends_indirectly(size_t to, size_t from) const {
    std::set<size_t> seen;
    std::vector<size_t> open;
    const auto push_producers = [&](size_t n, bool direct) {
      for (ValueId v : f_.nodes[n].inputs) {
        const int32_t p = producer_of(v);
        if (p < 0 || (direct && static_cast<size_t>(p) == from)) continue;
        if (seen.insert(static_cast<size_t>(p)).second) open.push_back(static_cast<size_t>(p));
      }
    };
    push_producers(to, true);
    while (!open.empty()) {
      const size_t n = open.back();
      open.pop_back();
      if (n == from) return true;
      push_producers(n, false);
    }
    return false;
  }

  // Moving a read of memory that some node updates could move it past the update.
  bool reads_taken_over(size_t p) const {
    for (ValueId v : f_.nodes[p].inputs)
      if (taken_over_[v]) return true;
    return false;
  }

  int32_t producer_of(ValueId v) const { return f_.values[v].producer; }

  // Values that nodes other than c, results or outputs read.
  std::set<ValueId> read_elsewhere(size_t p, size_t c) const {
    std::set<ValueId> kept;
    const auto mine = [&](ValueId v) {
      const auto& outputs = f_.nodes[p].outputs;
      return std::find(outputs.begin(), outputs.end(), v) != outputs.end();
    };
    for (size_t n = 0; n < f_.nodes.size(); ++n)
      if (n != c && f_.nodes[n].op)
        for (ValueId v : f_.nodes[n].inputs)
          if (mine(v)) kept.insert(v);
    for (ValueId v : f_.results)
      if (mine(v)) kept.insert(v);
    if (f_.id() == 0) {
      for (const Output& o : graph_.outputs())
        if (mine(o.value)) kept.insert(o.value);
      for (const State& s : graph_.states())
        if (s.next != kNoValue && mine(s.next)) kept.insert(s.next);
    }
    return kept;
  }

  bool take_in_producer(size_t c) {
    for (ValueId v : f_.nodes[c].inputs) {
      const int32_t producer = producer_of(v);
      if (producer < 0) continue;
      const auto p = static_cast<size_t>(producer);
      if (!f_.nodes[p].op || !pointwise(p)) continue;
      const bool constant = f_.nodes[p].inputs.empty();
      if (!constant && (shape_of(p) != shape_of(c) || reads_taken_over(p))) continue;
      std::set<ValueId> kept = constant ? std::set<ValueId>{} : read_elsewhere(p, c);
      // A producer that others read too is joined only if none of them lies between the two.
      if (!kept.empty() && depends_indirectly(c, p)) continue;
      if (kept.empty() && !constant && depends_indirectly(c, p)) continue;
      Chain joined = join(chain_of(f_.nodes[p]), chain_of(f_.nodes[c]), kept);
      simplify(joined.expr);
      drop_unread(joined);
      if (joined.inputs.size() + joined.outputs.size() > kMaxOperands) continue;
      const bool drop = !constant || read_elsewhere(p, c).empty();
      write(c, joined);
      if (drop) f_.nodes[p].op = nullptr;
      for (size_t o = 0; o < f_.nodes[c].outputs.size(); ++o) {
        f_.values[f_.nodes[c].outputs[o]].producer = static_cast<int32_t>(c);
        f_.values[f_.nodes[c].outputs[o]].output = static_cast<int32_t>(o);
      }
      if (drop) f_.nodes[p].inputs.clear();
      return true;
    }
    return false;
  }

  void write(size_t n, const Chain& chain) {
    Node& node = f_.nodes[n];
    node.inputs = chain.inputs;
    node.outputs = chain.outputs;
    node.attrs.erase("stop").erase("straight");
    node.attrs.set("expr", chain.expr.to_string());
    std::vector<int64_t> dtypes;
    for (ValueId v : chain.outputs) dtypes.push_back(static_cast<int64_t>(f_.type_of(v).dtype));
    node.attrs.set("dtypes", dtypes);
    node.attrs.set("shape", f_.type_of(chain.outputs[0]).shape.to_vector());
  }

  // Joining with a producer that others read moves its results later: restores a valid order.
  void sort() {
    f_.renumber();
    std::vector<int> state(f_.nodes.size(), 0);
    std::vector<size_t> order;
    const std::function<void(size_t)> visit = [&](size_t n) {
      if (state[n]) return;
      state[n] = 1;
      for (ValueId v : f_.nodes[n].inputs)
        if (producer_of(v) >= 0) visit(static_cast<size_t>(producer_of(v)));
      order.push_back(n);
    };
    for (size_t n = 0; n < f_.nodes.size(); ++n) visit(n);
    std::vector<Node> nodes;
    for (size_t n : order) nodes.push_back(std::move(f_.nodes[n]));
    f_.nodes = std::move(nodes);
  }

  Graph& graph_;
  Function& f_;
  std::vector<bool> taken_over_;
};

}  // namespace

void fuse_pointwise(Graph& graph) {
  for (FunctionId id : reachable(graph)) Fuser(graph, graph.function(id)).run();
}

}  // namespace hierarchos
