#include "passes/autodiff.h"

#include <algorithm>
#include <map>

#include "ops/pointwise/pointwise.h"
#include "ops/views/views.h"

namespace hierarchos {
namespace {

using Grads = std::vector<std::optional<Value>>;

// Where the backward of a body finds a forward value in the caller.
struct Import {
  enum class From : uint8_t { Argument, Result } from;
  uint32_t index;
};

// A body's forward that also returns what its backward reads, and that backward: arguments are the imports, then the
// gradients of the results in `given`; results are the gradients of the arguments in `made`.
struct Differentiated {
  FunctionId forward = 0, backward = 0;
  std::vector<Import> imports;
  std::vector<size_t> given, made;
};

class Autodiff {
 public:
  Autodiff(Graph& graph, SaveSet save) : graph_(graph), save_(save) {}

  // Which values of `f` carry a gradient to the wanted ones.
  std::vector<bool> reach(const Function& f, const std::vector<bool>& wanted_arguments) {
    std::vector<bool> on(f.values.size(), false);
    for (size_t i = 0; i < f.arguments.size(); ++i) on[f.arguments[i]] = wanted_arguments[i];
    reach_nodes(f, f.nodes.size(), on);
    return on;
  }

  void reach_nodes(const Function& f, size_t count, std::vector<bool>& on) {
    for (size_t n = 0; n < count; ++n) {
      const Node& node = f.nodes[n];
      if (node.op->kind == OpKind::Control) {
        const std::vector<bool> results = reach_control(node, on);
        for (size_t r = 0; r < results.size(); ++r)
          on[node.outputs[r]] = results[r] && is_floating(f.type_of(node.outputs[r]).dtype);
        continue;
      }
      if (!node.op->vjp) continue;
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return on[v]; });
      for (ValueId v : node.outputs)
        if (any && is_floating(f.type_of(v).dtype)) on[v] = true;
    }
  }

  // Pulls the gradients of `f`'s values back through its first `count` nodes. `forward` is where control nodes are
  // replaced by their saving versions; gradient nodes are emitted to the graph's current function, where `get` finds
  // forward values.
  void pull(Function& forward, size_t count, const std::vector<bool>& on, Grads& grads,
            const std::function<Value(ValueId)>& get) {
    for (size_t n = count; n-- > 0;) {
      const auto has_grad = [&](ValueId v) { return v < grads.size() && grads[v].has_value(); };
      {
        const Node& node = forward.nodes[n];
        if (std::none_of(node.outputs.begin(), node.outputs.end(), has_grad) ||
            std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return on[v]; }))
          continue;
      }
      Grads input_grads;
      const Scope scope(graph_, forward.nodes[n].scope + ".grad");
      if (forward.nodes[n].op->kind == OpKind::Control)
        input_grads = pull_control(forward, n, on, grads, get);
      else
        input_grads = pull_node(forward.nodes[n], on, grads, get);
      const Node node = forward.nodes[n];  // sums of gradients append nodes, which may move the original
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId v = node.inputs[i];
        if (!on[v] || !input_grads[i]) continue;
        if (input_grads[i]->shape() != forward.type_of(v).shape)
          throw UserError("{}: the gradient of operand {} of {} has shape {}, the operand {}", node.scope, i, node.op->name,
                          input_grads[i]->shape().to_string(), forward.type_of(v).shape.to_string());
        grads[v] = grads[v] ? ops::add(*grads[v], *input_grads[i]) : *input_grads[i];
      }
    }
  }

 private:
  Grads pull_node(const Node& node_in_forward, const std::vector<bool>& on, const Grads& grads,
                  const std::function<Value(ValueId)>& get) {
    const Node node = node_in_forward;  // the rule appends nodes, which may move the original
    if (!node.op->vjp) return Grads(node.inputs.size());
    VjpContext context{graph_, node.attrs, {}, {}, {}, {}};
    for (ValueId v : node.inputs) {
      context.inputs.push_back(get(v));
      context.wanted.push_back(on[v]);
    }
    for (ValueId v : node.outputs) {
      context.outputs.push_back(get(v));
      context.grads.push_back(grads[v]);
    }
    Grads result = node.op->vjp(context);
    result.resize(node.inputs.size());
    return result;
  }

  // --- control nodes

  static size_t skipped(const Node& node) {
    return node.op == &predicate_op() ? 1 + static_cast<size_t>(node.attrs.i("otherwise")) : 0;
  }

  // Wanted arguments of the body; for a scan, closed under the carries.
  std::vector<bool> wanted_arguments(const Node& node, const std::vector<bool>& on) {
    const Function& body = graph_.function(node.body);
    const size_t skip = skipped(node);
    std::vector<bool> wanted(body.arguments.size());
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = on[node.inputs[i + skip]];
    if (node.op != &scan_op()) return wanted;
    const auto carries = static_cast<size_t>(node.attrs.i("carries"));
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<bool> inside = reach(body, wanted);
      for (size_t c = 0; c < carries; ++c)
        if (inside[body.results[c]] && !wanted[c]) wanted[c] = changed = true;
    }
    return wanted;
  }

  std::vector<bool> reach_control(const Node& node, const std::vector<bool>& on) {
    const Function& body = graph_.function(node.body);
    const std::vector<bool> inside = reach(body, wanted_arguments(node, on));
    std::vector<bool> results;
    for (ValueId r : body.results) results.push_back(inside[r]);
    for (size_t i = 1; i < skipped(node); ++i)
      if (on[node.inputs[i]]) results[i - 1] = true;
    return results;
  }

  Grads pull_control(Function& forward, size_t n, const std::vector<bool>& on, Grads& grads,
                     const std::function<Value(ValueId)>& get) {
    const Node& node = forward.nodes[n];
    if (node.op == &scan_op()) return pull_scan(forward, n, on, grads, get);
    const size_t skip = skipped(node);
    std::vector<bool> given;
    for (ValueId v : node.outputs) given.push_back(grads[v].has_value());
    const Differentiated d = differentiate(node.body, wanted_arguments(node, on), given);
    replace_body(forward, n, d.forward);

    const Node now = forward.nodes[n];
    std::vector<Value> inputs;
    for (const Import& import : d.imports)
      inputs.push_back(get(import.from == Import::From::Argument ? now.inputs[import.index + skip] : now.outputs[import.index]));
    for (size_t r : d.given) inputs.push_back(*grads[now.outputs[r]]);
    Grads result(now.inputs.size());
    if (now.op == &call_op()) {
      std::vector<Value> made = graph_.emit_control(call_op(), d.backward, inputs, {}, now.scope + ".grad");
      for (size_t i = 0; i < d.made.size(); ++i) result[d.made[i]] = made[i];
      return result;
    }
    // predicate: where the flag is 0 the body's arguments get zeros, and `otherwise` gets everything.
    const Value flag = get(now.inputs[0]);
    std::vector<Value> all = {flag};
    const Function& backward = graph_.function(d.backward);
    for (ValueId r : backward.results) all.push_back(ops::zeros(graph_, backward.type_of(r)));
    all.insert(all.end(), inputs.begin(), inputs.end());
    const Attrs attrs{{"otherwise", static_cast<int64_t>(backward.results.size())}};
    std::vector<Value> made = graph_.emit_control(predicate_op(), d.backward, all, attrs, now.scope + ".grad");
    for (size_t i = 0; i < d.made.size(); ++i) result[d.made[i] + skip] = made[i];
    for (size_t o = 1; o < skip; ++o)
      if (on[now.inputs[o]] && grads[now.outputs[o - 1]]) {
        const Value g = *grads[now.outputs[o - 1]];
        result[o] = ops::select(flag, ops::zeros(graph_, g.type()), g);
      }
    return result;
  }

  // Points a control node at a version of its body with more results.
  void replace_body(Function& forward, size_t n, FunctionId body) {
    forward.nodes[n].body = body;
    const Function& callee = graph_.function(body);
    const bool is_scan = forward.nodes[n].op == &scan_op();
    for (size_t r = forward.nodes[n].outputs.size(); r < callee.results.size(); ++r) {
      Type type = callee.type_of(callee.results[r]);
      if (is_scan) {
        std::vector<int64_t> dims = {forward.nodes[n].attrs.i("trip")};
        for (int64_t d : type.shape.dims()) dims.push_back(d);
        type.shape = Shape(dims);
      }
      const ValueId v = forward.add_value(type, static_cast<int32_t>(n), static_cast<int32_t>(r));
      forward.nodes[n].outputs.push_back(v);
    }
    if (forward.nodes[n].op == &predicate_op()) {
      // What is saved needs an `otherwise` of its own; its value is never used, since the gradient is predicated too.
      Node& node = forward.nodes[n];
      const auto before = static_cast<size_t>(node.attrs.i("otherwise"));
      if (callee.results.size() > before)
        throw UnsupportedError("{}: the gradient of a predicate whose body saves values is not supported; compute both sides and "
                               "select, or use SaveSet::None", node.scope);
    }
  }

  Grads pull_scan(Function& forward, size_t n, const std::vector<bool>& on, Grads& grads,
                  const std::function<Value(ValueId)>& get) {
    const auto carries = static_cast<size_t>(forward.nodes[n].attrs.i("carries"));
    const auto xs = static_cast<size_t>(forward.nodes[n].attrs.i("xs"));
    const int64_t trip = forward.nodes[n].attrs.i("trip");
    const bool reverse = forward.nodes[n].attrs.i("reverse") != 0;
    const std::vector<bool> wanted = wanted_arguments(forward.nodes[n], on);
    const size_t results = forward.nodes[n].outputs.size();
    std::vector<bool> given(results);
    {
      const Function& body = graph_.function(forward.nodes[n].body);
      const std::vector<bool> inside = reach(body, wanted);
      for (size_t r = 0; r < results; ++r)
        given[r] = r < carries ? wanted[r] && inside[body.results[r]] : grads[forward.nodes[n].outputs[r]].has_value();
    }
    const Differentiated d = differentiate(forward.nodes[n].body, wanted, given);

    // Every import that changes from step to step must be stacked: incoming carries and carries going out become ys.
    Function& saving = clone(graph_.function(d.forward), ".scan");
    std::vector<Import> sources = d.imports;
    for (Import& import : sources) {
      const bool argument = import.from == Import::From::Argument;
      if (import.index >= carries) continue;
      saving.results.push_back(argument ? saving.arguments[import.index] : saving.results[import.index]);
      import = {Import::From::Result, static_cast<uint32_t>(saving.results.size() - 1)};
    }
    replace_body(forward, n, saving.id());
    const Node now = forward.nodes[n];

    // The backward step: carries are the gradients of the carries and the sums of the constants' gradients.
    std::vector<size_t> made_carries, made_xs, made_constants;
    for (size_t i = 0; i < d.made.size(); ++i)
      (d.made[i] < carries ? made_carries : d.made[i] < carries + xs ? made_xs : made_constants).push_back(i);
    std::vector<size_t> grad_carries;  // carries with a gradient
    for (size_t c = 0; c < carries; ++c)
      if (wanted[c]) grad_carries.push_back(c);

    const Function& body = graph_.function(now.body);
    std::vector<Value> init, stacked, constants;
    for (size_t c : grad_carries) {
      const auto& g = grads[now.outputs[c]];
      init.push_back(g ? *g : ops::zeros(graph_, body.type_of(body.arguments[c])));
    }
    for (size_t i : made_constants) {
      Type type = body.type_of(body.arguments[d.made[i]]);
      type.dtype = DType::F32;
      init.push_back(ops::zeros(graph_, type));
    }
    std::vector<bool> is_stacked;
    for (const Import& import : sources) {
      const bool constant = import.from == Import::From::Argument && import.index >= carries + xs;
      is_stacked.push_back(!constant);
      const Value v = get(import.from == Import::From::Argument ? now.inputs[import.index] : now.outputs[import.index]);
      (constant ? constants : stacked).push_back(v);
    }
    std::vector<size_t> given_ys;
    for (size_t r : d.given)
      if (r >= carries) {
        given_ys.push_back(r);
        stacked.push_back(*grads[now.outputs[r]]);
      }

    const auto step = [&](std::span<const Value> arguments) {
      size_t next_stacked = init.size(), next_constant = 0;
      std::vector<Value> inputs;
      for (bool s : is_stacked) inputs.push_back(s ? arguments[next_stacked++] : constants[next_constant++]);
      for (size_t r : d.given) {
        if (r >= carries)
          inputs.push_back(arguments[next_stacked++]);
        else
          inputs.push_back(arguments[static_cast<size_t>(
              std::find(grad_carries.begin(), grad_carries.end(), r) - grad_carries.begin())]);
      }
      std::vector<Value> made = graph_.emit_control(call_op(), d.backward, inputs, {}, "step");
      std::vector<Value> out;
      for (size_t k = 0; k < grad_carries.size(); ++k) {
        std::optional<Value> g;
        for (size_t i : made_carries)
          if (d.made[i] == grad_carries[k]) g = made[i];
        out.push_back(g ? *g : ops::zeros(graph_, arguments[k].type()));
      }
      for (size_t k = 0; k < made_constants.size(); ++k)
        out.push_back(ops::add(arguments[grad_carries.size() + k], made[made_constants[k]]));
      for (size_t i : made_xs) out.push_back(made[i]);
      return out;
    };
    std::vector<Value> made = graph_.scan("grad", trip, init, stacked, step, !reverse);
    Grads result(now.inputs.size());
    for (size_t k = 0; k < grad_carries.size(); ++k) result[grad_carries[k]] = made[k];
    for (size_t k = 0; k < made_constants.size(); ++k) result[d.made[made_constants[k]]] = made[grad_carries.size() + k];
    for (size_t k = 0; k < made_xs.size(); ++k) result[d.made[made_xs[k]]] = made[init.size() + k];
    return result;
  }

  Function& clone(const Function& from, const std::string& suffix) {
    Function& to = graph_.add_function(from.name() + suffix);
    to.arguments = from.arguments;
    to.values = from.values;
    to.nodes = from.nodes;
    to.results = from.results;
    return to;
  }

  Differentiated differentiate(FunctionId id, const std::vector<bool>& wanted, const std::vector<bool>& given) {
    const auto key = std::make_tuple(id, wanted, given);
    auto found = cache_.find(key);
    if (found != cache_.end()) return found->second;

    const size_t original_results = graph_.function(id).results.size();
    Function& forward = clone(graph_.function(id), "");
    Function& backward = graph_.add_function(graph_.function(id).name() + ".backward");
    const std::vector<bool> on = reach(forward, wanted);
    const size_t node_count = forward.nodes.size();
    Differentiated d;
    graph_.push(backward);

    std::map<ValueId, Value> made;        // forward value → value of the backward function
    std::map<ValueId, ValueId> imported;  // forward value → argument of the backward function
    const auto import = [&](ValueId v) {
      const ValueId argument = backward.add_argument(forward.type_of(v));
      imported.emplace(v, argument);
      return Value{&backward, argument};
    };
    std::function<Value(ValueId)> get = [&](ValueId v) -> Value {
      auto at = made.find(v);
      if (at != made.end()) return at->second;
      const int32_t producer = forward.values[v].producer;
      bool again = false;
      if (producer >= 0) {
        const OpDef& op = *forward.nodes[static_cast<size_t>(producer)].op;
        again = op.kind == OpKind::View || (save_ == SaveSet::None) || (save_ == SaveSet::Auto && op.recompute);
      }
      if (!again) return made.emplace(v, import(v)).first->second;
      const Node node = forward.nodes[static_cast<size_t>(producer)];
      std::vector<Value> inputs;
      for (ValueId i : node.inputs) inputs.push_back(get(i));
      const Scope scope(graph_, node.scope);
      std::vector<Value> outputs = node.op->kind == OpKind::Control
                                       ? graph_.emit_control(*node.op, node.body, inputs, node.attrs, node.scope)
                                       : graph_.emit(*node.op, inputs, node.attrs);
      for (size_t o = 0; o < outputs.size(); ++o) made.insert_or_assign(node.outputs[o], outputs[o]);
      return made.at(v);
    };

    Grads grads(forward.values.size());
    std::vector<ValueId> grad_arguments;
    for (size_t r = 0; r < original_results; ++r) {
      if (!given[r] || !on[forward.results[r]]) continue;
      d.given.push_back(r);
      const ValueId v = forward.results[r];
      const ValueId argument = backward.add_argument(forward.type_of(v));
      grad_arguments.push_back(argument);
      const Value g{&backward, argument};
      grads[v] = grads[v] ? ops::add(*grads[v], g) : g;
    }
    pull(forward, node_count, on, grads, get);
    for (size_t i = 0; i < forward.arguments.size(); ++i) {
      const ValueId v = forward.arguments[i];
      if (!wanted[i] || !grads[v]) continue;
      d.made.push_back(i);
      backward.results.push_back(grads[v]->id);
    }
    graph_.pop();

    prune(backward);
    std::vector<bool> read(backward.values.size(), false);
    for (const Node& node : backward.nodes)
      for (ValueId v : node.inputs) read[v] = true;
    for (ValueId v : backward.results) read[v] = true;
    // Arguments in the order that callers give them: imports, then gradients.
    backward.arguments.clear();
    for (const auto& [v, argument] : imported) {
      if (!read[argument]) continue;
      backward.arguments.push_back(argument);
      auto as_argument = std::find(forward.arguments.begin(), forward.arguments.end(), v);
      if (as_argument != forward.arguments.end()) {
        d.imports.push_back({Import::From::Argument, static_cast<uint32_t>(as_argument - forward.arguments.begin())});
        continue;
      }
      auto as_result = std::find(forward.results.begin(), forward.results.end(), v);
      if (as_result == forward.results.end()) as_result = forward.results.insert(forward.results.end(), v);
      d.imports.push_back({Import::From::Result, static_cast<uint32_t>(as_result - forward.results.begin())});
    }
    backward.arguments.insert(backward.arguments.end(), grad_arguments.begin(), grad_arguments.end());
    for (size_t i = 0; i < backward.arguments.size(); ++i)
      backward.values[backward.arguments[i]].output = static_cast<int32_t>(i);
    d.forward = forward.id();
    d.backward = backward.id();
    cache_.emplace(key, d);
    return d;
  }

  static void prune(Function& f) {
    std::vector<bool> read(f.values.size(), false);
    for (ValueId v : f.results) read[v] = true;
    std::vector<Node> kept;
    for (size_t n = f.nodes.size(); n-- > 0;) {
      Node& node = f.nodes[n];
      if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return read[v]; })) continue;
      for (ValueId v : node.inputs) read[v] = true;
      kept.push_back(std::move(node));
    }
    std::reverse(kept.begin(), kept.end());
    f.nodes = std::move(kept);
    f.renumber();
  }

  Graph& graph_;
  SaveSet save_;
  std::map<std::tuple<FunctionId, std::vector<bool>, std::vector<bool>>, Differentiated> cache_;
};

}  // namespace

std::vector<std::optional<Value>> gradients(Value loss, std::span<const Value> wrt, SaveSet save) {
  Graph& graph = loss.graph();
  Function& root = graph.root();
  if (loss.function != &root || &graph.current() != &root) throw UserError("gradients are taken in the root function");
  if (loss.shape().rank() != 0 || !is_floating(loss.dtype()))
    throw UserError("the loss is a rank-0 floating value, this is {}", loss.type().to_string());
  Autodiff autodiff(graph, save);
  std::vector<bool> on(root.values.size(), false);
  for (const Value& v : wrt) {
    if (v.function != &root) throw UserError("gradients are taken with respect to values of the root");
    on[v.id] = true;
  }
  const size_t count = root.nodes.size();
  autodiff.reach_nodes(root, count, on);
  std::vector<std::optional<Value>> result;
  if (!on[loss.id]) {
    result.resize(wrt.size());
    return result;
  }
  Grads grads(root.values.size());
  grads[loss.id] = ops::full(graph, Shape{}, 1.0, loss.dtype());
  autodiff.pull(root, count, on, grads, [&](ValueId v) { return Value{&root, v}; });
  for (const Value& v : wrt) result.push_back(grads[v.id]);
  return result;
}

}  // namespace hierarchos
