#include "runtime/interpreter.h"

#include "graph/view.h"
#include "runtime/ref_tensor.h"

namespace hierarchos {

void Interpreter::set(const std::string& name, RefTensor value) {
  if (!float64_) round_in_place(value);
  leaves_.insert_or_assign(name, std::move(value));
}

void Interpreter::set(const std::string& name, const HostTensor& value) { set(name, to_ref(value)); }

const RefTensor& Interpreter::output(const std::string& name) const {
  auto at = outputs_.find(name);
  if (at == outputs_.end()) throw UserError("the graph has no output {}", name);
  return at->second;
}

const RefTensor& Interpreter::value(const std::string& leaf) const {
  auto at = leaves_.find(leaf);
  if (at == leaves_.end()) throw UserError("{} has no value", leaf);
  return at->second;
}

const RefTensor& Interpreter::value(Value v) const { return root_values_.at(v.id); }

void Interpreter::run() {
  const Function& root = graph_.root();
  std::vector<RefTensor> arguments(root.values.size());
  const auto take = [&](const std::string& name, const Type& type, ValueId id) {
    auto at = leaves_.find(name);
    if (at == leaves_.end()) throw UserError("{} has no value", name);
    if (at->second.type.shape != type.shape)
      throw UserError("{}: the graph has {}, the value {}", name, type.to_string(), at->second.type.to_string());
    arguments[id] = at->second;
    arguments[id].type = type;
  };
  for (const State& s : graph_.states())
    if (!leaves_.count(s.name)) {
      RefTensor start{s.type, std::vector<double>(static_cast<size_t>(s.type.shape.elements()), 0.0)};
      if (s.reset == Reset::Value && s.initial) start.data = s.initial->to_doubles();
      leaves_.emplace(s.name, std::move(start));
    }
  for (const DerivedInput& d : graph_.derived_inputs()) {
    std::vector<HostTensor> from;
    for (const std::string& name : d.from) from.push_back(to_host(value(name)));
    set(d.name, d.compute(from));
  }
  for (const Parameter& p : graph_.parameters()) take(p.name, p.type, p.value);
  for (const State& s : graph_.states()) take(s.name, s.type, s.value);
  for (const Input& i : graph_.inputs()) take(i.name, i.type, i.value);
  for (const DerivedInput& d : graph_.derived_inputs()) take(d.name, d.type, d.value);
  for (const Constant& c : graph_.constants()) arguments[c.value] = to_ref(c.data);

  std::vector<const RefTensor*> pointers;
  for (ValueId v : root.arguments) pointers.push_back(&arguments[v]);
  root_values_.assign(root.values.size(), {});
  run_function(root, pointers, &root_values_);
  for (ValueId v : root.arguments) root_values_[v] = arguments[v];
  outputs_.clear();
  for (const Output& o : graph_.outputs()) outputs_.emplace(o.name, root_values_[o.value]);
  for (const State& s : graph_.states())
    if (s.next != kNoValue) leaves_[s.name] = root_values_[s.next];
}

std::vector<RefTensor> Interpreter::run_function(const Function& function, const std::vector<const RefTensor*>& arguments,
                                                 std::vector<RefTensor>* keep) {
  std::vector<RefTensor> local(function.values.size());
  std::vector<const RefTensor*> at(function.values.size(), nullptr);
  for (size_t i = 0; i < arguments.size(); ++i) at[function.arguments[i]] = arguments[i];

  for (const Node& node : function.nodes) {
    std::vector<const RefTensor*> inputs;
    for (ValueId v : node.inputs) inputs.push_back(at[v]);
    std::vector<RefTensor> outputs;
    if (node.op->kind == OpKind::View) {
      const Type& type = function.type_of(node.outputs[0]);
      StridedView view;
      apply_view(*node.op, node.attrs, StridedView::contiguous(inputs[0]->type.shape), type.shape, &view);
      outputs.push_back(materialise(*inputs[0], type, view.shape, view.strides, view.offset));
    } else if (node.op == &call_op()) {
      outputs = run_function(graph_.function(node.body), inputs, nullptr);
    } else if (node.op == &predicate_op()) {
      const auto otherwise = static_cast<size_t>(node.attrs.i("otherwise"));
      if (inputs[0]->data[0] != 0)
        outputs = run_function(graph_.function(node.body), {inputs.begin() + 1 + static_cast<int64_t>(otherwise), inputs.end()},
                               nullptr);
      else
        for (size_t i = 0; i < otherwise; ++i) outputs.push_back(*inputs[1 + i]);
    } else if (node.op == &scan_op()) {
      const Function& body = graph_.function(node.body);
      const auto carries = static_cast<size_t>(node.attrs.i("carries")), xs = static_cast<size_t>(node.attrs.i("xs"));
      const auto trip = static_cast<size_t>(node.attrs.i("trip"));
      const bool reverse = node.attrs.i("reverse") != 0;
      std::vector<RefTensor> carry;
      for (size_t c = 0; c < carries; ++c) carry.push_back(*inputs[c]);
      for (size_t r = 0; r < node.outputs.size(); ++r) {
        const Type& type = function.type_of(node.outputs[r]);
        outputs.push_back({type, std::vector<double>(r < carries ? 0 : static_cast<size_t>(type.shape.elements()))});
      }
      for (size_t i = 0; i < trip; ++i) {
        const size_t t = reverse ? trip - 1 - i : i;
        std::vector<RefTensor> slices(xs);
        std::vector<const RefTensor*> step;
        for (const RefTensor& c : carry) step.push_back(&c);
        for (size_t x = 0; x < xs; ++x) {
          const Type& type = body.type_of(body.arguments[carries + x]);
          const auto n = static_cast<int64_t>(type.shape.elements());
          const auto from = inputs[carries + x]->data.begin() + static_cast<int64_t>(t) * n;
          slices[x] = {type, std::vector<double>(from, from + n)};
          step.push_back(&slices[x]);
        }
        for (size_t c = carries + xs; c < inputs.size(); ++c) step.push_back(inputs[c]);
        std::vector<RefTensor> results = run_function(body, step, nullptr);
        for (size_t r = carries; r < results.size(); ++r)
          std::copy(results[r].data.begin(), results[r].data.end(),
                    outputs[r].data.begin() + static_cast<int64_t>(t * results[r].data.size()));
        results.resize(carries);
        carry = std::move(results);
      }
      for (size_t c = 0; c < carries; ++c) outputs[c] = std::move(carry[c]);
    } else if (node.op == &host_step_op()) {
      std::vector<HostTensor> operands;
      for (const RefTensor* t : inputs) operands.push_back(to_host(*t));
      for (const HostTensor& t : graph_.host_steps()[static_cast<size_t>(node.attrs.i("step"))].run(operands)) outputs.push_back(to_ref(t));
    } else {
      const Operator& op = operator_of(*node.op);
      if (!op.reference) throw UnsupportedError("{}: {} has no reference", node.scope, node.op->name);
      for (ValueId v : node.outputs) {
        const Type& type = function.type_of(v);
        outputs.push_back({type, std::vector<double>(static_cast<size_t>(type.shape.elements()))});
      }
      for (const auto& [result, input] : node.op->updates)
        outputs[static_cast<size_t>(result)].data = inputs[static_cast<size_t>(input)]->data;
      op.reference(node.attrs, inputs, outputs);
      if (!float64_)
        for (RefTensor& o : outputs) round_in_place(o);
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
      local[node.outputs[o]] = std::move(outputs[o]);
      at[node.outputs[o]] = &local[node.outputs[o]];
    }
  }
  std::vector<RefTensor> results;
  for (ValueId r : function.results) results.push_back(*at[r]);
  if (keep) *keep = std::move(local);
  return results;
}

}  // namespace hierarchos
