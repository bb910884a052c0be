// Dead code, common subexpressions and the order of nodes.
#include <algorithm>
#include <map>
#include <set>

#include "passes/passes.h"

namespace hierarchos {

std::vector<FunctionId> reachable(const Graph& graph) {
  std::vector<FunctionId> order;
  std::vector<bool> seen(graph.function_count(), false);
  const std::function<void(FunctionId)> visit = [&](FunctionId id) {
    seen[id] = true;
    for (const Node& node : graph.function(id).nodes)
      if (node.op->kind == OpKind::Control && !seen[node.body]) visit(node.body);
    order.push_back(id);
  };
  visit(0);
  return order;
}

std::vector<int> read_counts(const Graph& graph, const Function& f) {
  std::vector<int> count(f.values.size(), 0);
  for (const Node& node : f.nodes)
    for (ValueId v : node.inputs) ++count[v];
  for (ValueId v : f.results) ++count[v];
  if (f.id() == 0) {
    for (const Output& o : graph.outputs()) ++count[o.value];
    for (const State& s : graph.states())
      if (s.next != kNoValue) ++count[s.next];
  }
  return count;
}

namespace {

void drop_dead_nodes(const Graph& graph, Function& f) {
  std::vector<int> count = read_counts(graph, f);
  std::vector<bool> dead(f.nodes.size(), false);
  bool any = false;
  for (size_t n = f.nodes.size(); n-- > 0;) {
    const Node& node = f.nodes[n];
    if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return count[v] > 0; })) continue;
    for (ValueId v : node.inputs) --count[v];
    dead[n] = any = true;
  }
  if (!any) return;
  size_t kept = 0;
  for (size_t n = 0; n < f.nodes.size(); ++n)
    if (!dead[n]) {
      if (kept != n) f.nodes[kept] = std::move(f.nodes[n]);
      ++kept;
    }
  f.nodes.resize(kept);
  f.renumber();
}

size_t skipped(const Node& node) {
  return node.op == &predicate_op() ? 1 + static_cast<size_t>(node.attrs.i("otherwise")) : 0;
}

// Results and arguments of a body that no caller uses. Returns whether anything changed.
bool trim_signatures(Graph& graph, const std::vector<FunctionId>& order) {
  std::map<FunctionId, std::vector<std::pair<Function*, size_t>>> sites;
  for (FunctionId id : order) {
    Function& f = graph.function(id);
    for (size_t n = 0; n < f.nodes.size(); ++n)
      if (f.nodes[n].op->kind == OpKind::Control) sites[f.nodes[n].body].emplace_back(&f, n);
  }
  bool changed = false;
  for (const auto& [id, calls] : sites) {
    Function& callee = graph.function(id);
    std::vector<bool> used(callee.results.size(), false);
    for (const auto& [caller, n] : calls) {
      const Node& node = caller->nodes[n];
      const std::vector<int> count = read_counts(graph, *caller);
      size_t fixed = 0;  // carries and predicate results stay
      if (node.op == &scan_op()) fixed = static_cast<size_t>(node.attrs.i("carries"));
      if (node.op == &predicate_op()) fixed = node.outputs.size();
      for (size_t r = 0; r < used.size(); ++r) used[r] = used[r] || r < fixed || count[node.outputs[r]] > 0;
    }
    if (std::find(used.begin(), used.end(), false) != used.end()) {
      changed = true;
      const auto keep = [&](std::vector<ValueId>& list) {
        size_t to = 0;
        for (size_t r = 0; r < used.size(); ++r)
          if (used[r]) list[to++] = list[r];
        list.resize(to);
      };
      keep(callee.results);
      for (const auto& [caller, n] : calls) {
        keep(caller->nodes[n].outputs);
        caller->renumber();
      }
      drop_dead_nodes(graph, callee);
    }
    const std::vector<int> count = read_counts(graph, callee);
    std::vector<bool> read;
    for (ValueId a : callee.arguments) read.push_back(count[a] > 0);
    size_t fixed = 0;
    for (const auto& [caller, n] : calls)
      if (caller->nodes[n].op == &scan_op()) fixed = static_cast<size_t>(caller->nodes[n].attrs.i("carries"));
    for (size_t i = 0; i < fixed; ++i) read[i] = true;
    if (std::find(read.begin(), read.end(), false) != read.end()) {
      changed = true;
      for (const auto& [caller, n] : calls) {
        Node& node = caller->nodes[n];
        const size_t skip = skipped(node);
        std::vector<ValueId> inputs(node.inputs.begin(), node.inputs.begin() + static_cast<int64_t>(skip));
        int64_t xs_dropped = 0;
        for (size_t i = 0; i < read.size(); ++i) {
          if (read[i])
            inputs.push_back(node.inputs[skip + i]);
          else if (node.op == &scan_op() && i < fixed + static_cast<size_t>(node.attrs.i("xs")))
            ++xs_dropped;
        }
        if (xs_dropped) node.attrs.set("xs", node.attrs.i("xs") - xs_dropped);
        node.inputs = std::move(inputs);
      }
      std::vector<ValueId> arguments;
      for (size_t i = 0; i < read.size(); ++i)
        if (read[i]) arguments.push_back(callee.arguments[i]);
      callee.arguments = std::move(arguments);
    }
  }
  return changed;
}

}  // namespace

void eliminate_dead_code(Graph& graph) {
  for (bool changed = true; changed;) {
    const std::vector<FunctionId> order = reachable(graph);
    for (auto id = order.rbegin(); id != order.rend(); ++id) drop_dead_nodes(graph, graph.function(*id));
    changed = trim_signatures(graph, order);
  }
}

std::vector<bool> values_taken_over(const Function& f) {
  std::vector<bool> taken(f.values.size(), false);
  // A view of a value shares its memory.
  for (size_t n = f.nodes.size(); n-- > 0;) {
    const Node& node = f.nodes[n];
    for (const auto& [result, input] : node.op->updates) taken[node.inputs[static_cast<size_t>(input)]] = true;
    if (node.op->kind == OpKind::View && taken[node.outputs[0]]) taken[node.inputs[0]] = true;
  }
  return taken;
}

void eliminate_common_subexpressions(Graph& graph) {
  for (FunctionId id : reachable(graph)) {
    Function& f = graph.function(id);
    std::vector<bool> taken = values_taken_over(f);  // two values that are updated must stay two
    for (const Node& node : f.nodes)
      if (node.op->kind == OpKind::Control)
        for (ValueId v : node.inputs) taken[v] = true;
    std::vector<ValueId> same(f.values.size());
    for (size_t v = 0; v < same.size(); ++v) same[v] = static_cast<ValueId>(v);
    std::multimap<uint64_t, size_t> known;
    for (size_t n = 0; n < f.nodes.size(); ++n) {
      Node& node = f.nodes[n];
      for (ValueId& v : node.inputs) v = same[v];
      if (node.op->kind == OpKind::Control || node.op->kind == OpKind::Host || !node.op->updates.empty()) continue;
      if (node.op->name == "random_uniform") continue;
      if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return taken[v]; })) continue;
      uint64_t hash = node.attrs.hash() ^ reinterpret_cast<uintptr_t>(node.op);
      for (ValueId v : node.inputs) hash = hash * 1099511628211ull + v;
      bool found = false;
      for (auto [at, end] = known.equal_range(hash); at != end && !found; ++at) {
        const Node& other = f.nodes[at->second];
        if (other.op != node.op || other.inputs != node.inputs || !(other.attrs == node.attrs)) continue;
        for (size_t o = 0; o < node.outputs.size(); ++o) same[node.outputs[o]] = other.outputs[o];
        found = true;
      }
      if (!found) known.emplace(hash, n);
    }
    for (ValueId& r : f.results) r = same[r];
    if (id == 0) {
      for (Output& o : graph.outputs()) o.value = same[o.value];
      for (State& s : graph.states())
        if (s.next != kNoValue) s.next = same[s.next];
    }
  }
}

void schedule(Graph& graph) {
  for (FunctionId id : reachable(graph)) {
    Function& f = graph.function(id);
    const size_t count = f.nodes.size();
    // The memory a value lies in, through views and updates, to order readers of an old version before its update.
    std::vector<ValueId> memory(f.values.size());
    for (size_t v = 0; v < memory.size(); ++v) memory[v] = static_cast<ValueId>(v);
    std::vector<std::vector<size_t>> before(count);
    std::map<ValueId, std::vector<size_t>> readers;
    std::map<ValueId, size_t> writer;
    std::vector<int32_t> producer(f.values.size(), -1);
    for (size_t n = 0; n < count; ++n) {
      const Node& node = f.nodes[n];
      for (ValueId v : node.inputs)
        if (producer[v] >= 0) before[n].push_back(static_cast<size_t>(producer[v]));
      for (ValueId v : node.outputs) producer[v] = static_cast<int32_t>(n);
      if (node.op->kind == OpKind::View) memory[node.outputs[0]] = memory[node.inputs[0]];
      std::vector<std::pair<int, int>> updates = node.op->updates;
      if (node.op->kind == OpKind::Control) {
        // A body may update any argument; the planner knows which. Order everything that touches the same memory.
        for (size_t i = 0; i < node.inputs.size(); ++i) updates.emplace_back(-1, static_cast<int>(i));
      }
      for (const auto& [result, input] : updates) {
        const ValueId m = memory[node.inputs[static_cast<size_t>(input)]];
        if (result >= 0) {
          for (size_t r : readers[m]) before[n].push_back(r);
          memory[node.outputs[static_cast<size_t>(result)]] = m;
          writer[m] = n;
          readers[m].clear();
        }
      }
      for (ValueId v : node.inputs) {
        auto w = writer.find(memory[v]);
        if (w != writer.end() && w->second != n) before[n].push_back(w->second);
        readers[memory[v]].push_back(n);
      }
    }
    std::vector<int> depth(count, 0);
    for (size_t n = 0; n < count; ++n) {
      for (size_t b : before[n])
        if (b != n) depth[n] = std::max(depth[n], depth[b] + (f.nodes[b].op->kind == OpKind::View ? 0 : 1));
    }
    // Constants are made where they are first needed, not at the start: they would hold memory all along.
    std::vector<int> needed(f.values.size(), 1 << 30);
    for (size_t n = count; n-- > 0;) {
      int& d = depth[n];
      if (f.nodes[n].inputs.empty()) {
        int first = 1 << 30;
        for (ValueId v : f.nodes[n].outputs) first = std::min(first, needed[v]);
        if (first < (1 << 30) && first > 0) d = first - 1;
      }
      for (ValueId v : f.nodes[n].inputs) needed[v] = std::min(needed[v], d);
    }
    std::vector<size_t> order(count);
    for (size_t n = 0; n < count; ++n) order[n] = n;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return depth[a] < depth[b]; });
    std::vector<Node> nodes;
    nodes.reserve(count);
    for (size_t n : order) nodes.push_back(std::move(f.nodes[n]));
    f.nodes = std::move(nodes);
    f.renumber();
  }
}

void optimize(Graph& graph) {
  eliminate_dead_code(graph);
  eliminate_common_subexpressions(graph);
  eliminate_dead_code(graph);
  fuse_matmul(graph);
  fuse_pointwise(graph);
  eliminate_dead_code(graph);
  schedule(graph);
}

}  // namespace hierarchos
