#include "graph/graph.h"

#include <algorithm>

namespace hierarchos {

Graph::Graph() {
  functions_.push_back(std::make_unique<Function>(this, 0, "main", nullptr));
  stack_.push_back(functions_[0].get());
}

Graph::~Graph() = default;

std::string Graph::scope() const {
  std::string out;
  for (const std::string& s : scopes_) {
    if (s.empty()) continue;
    if (!out.empty()) out += '.';
    out += s;
  }
  return out;
}

void Graph::fail(const std::string& op, const std::vector<Value>& inputs, const std::string& what) const {
  std::string operands;
  for (const Value& v : inputs) operands += (operands.empty() ? "" : ", ") + v.type().to_string();
  const std::string where = scope();
  throw ShapeError(fmt::format("{}{}({}): {}", where.empty() ? "" : where + ": ", op, operands, what));
}

Value Graph::leaf(const std::string& name, const Type& type, bool* fresh) {
  auto found = leaves_.find(name);
  if (found != leaves_.end()) {
    Value value{functions_[0].get(), found->second};
    if (value.type() != type)
      throw UserError("{} is declared twice: as {} and as {}", name, value.type().to_string(), type.to_string());
    *fresh = false;
    return value;
  }
  ValueId id = functions_[0]->add_argument(type);
  leaves_.emplace(name, id);
  *fresh = true;
  return {functions_[0].get(), id};
}

Value Graph::parameter(const std::string& name, Type type, bool trainable, std::string tie_group) {
  bool fresh;
  Value value = leaf(name, type, &fresh);
  if (fresh) parameters_.push_back({name, type, trainable, std::move(tie_group), {}, value.id});
  return value;
}

Value Graph::state(const std::string& name, Type type, bool checkpointed, Reset reset) {
  bool fresh;
  Value value = leaf(name, type, &fresh);
  if (fresh) states_.push_back({name, type, checkpointed, reset, nullptr, value.id, kNoValue});
  return value;
}

Value Graph::input(const std::string& name, Type type, int ring) {
  if (ring < 2) throw UserError("input {}: a ring has at least two places", name);
  bool fresh;
  Value value = leaf(name, type, &fresh);
  if (fresh) inputs_.push_back({name, type, ring, value.id});
  return value;
}

Value Graph::derived(const std::string& name, Type type, std::vector<std::string> from,
                     std::function<HostTensor(std::span<const HostTensor>)> compute, int ring) {
  for (const std::string& f : from)
    if (!leaves_.count(f)) throw UserError("derived input {}: {} is not declared", name, f);
  bool fresh;
  Value value = leaf(name, type, &fresh);
  if (fresh) derived_.push_back({name, type, std::move(from), std::move(compute), ring, value.id});
  return value;
}

Value Graph::constant(HostTensor data) {
  bool fresh;
  Type type(data.dtype(), data.shape(), data.storage());
  Value value = leaf("constant." + std::to_string(constants_.size()), type, &fresh);
  constants_.push_back({std::move(data), value.id});
  return value;
}

CountId Graph::count(Value rank0_i32) {
  if (rank0_i32.function != functions_[0].get() || rank0_i32.dtype() != DType::I32 || rank0_i32.shape().rank() != 0)
    throw UserError("a device count is a rank-0 i32 value of the root");
  for (size_t i = 0; i < counts_.size(); ++i)
    if (counts_[i] == rank0_i32.id) return static_cast<CountId>(i);
  counts_.push_back(rank0_i32.id);
  return static_cast<CountId>(counts_.size() - 1);
}

void Graph::output(const std::string& name, Value value, int ring) {
  if (stack_.size() != 1) throw UserError("output {}: outputs are declared in the root", name);
  outputs_.push_back({name, ring, capture(root(), value)});
}

void Graph::update(Value state, Value value) {
  for (State& s : states_)
    if (s.value == state.id && state.function == &root()) {
      if (s.next != kNoValue) throw UserError("state {} is updated twice in one run", s.name);
      if (value.type() != state.type())
        throw UserError("state {}: {} cannot take over {}", s.name, value.type().to_string(), state.type().to_string());
      s.next = capture(root(), value);
      return;
    }
  throw UserError("update of a value that is no state");
}

ValueId Graph::capture(Function& into, Value value) {
  if (!value) throw UserError("{}: an operand is empty", scope());
  if (value.function == &into) return value.id;
  if (!into.parent())
    throw UserError("{}: a value of a finished body is used outside it; return it from the body", scope());
  const Value outer{into.parent(), capture(*into.parent(), value)};
  for (const auto& [known, id] : into.captures)
    if (known == outer) return id;
  ValueId id = into.add_argument(outer.type());
  into.captures.emplace_back(outer, id);
  return id;
}

namespace {
Graph::CastFn cast_function = nullptr;
}

void Graph::set_cast(CastFn cast) { cast_function = cast; }

Value Graph::to_precision(const OpDef& op, Value value) {
  const Type& type = value.type();
  if (!cast_function || type.storage != Storage::Plain || !is_floating(type.dtype) || type.dtype == DType::F64) return value;
  const DType wanted = op.precision == Precision::Compute ? compute_type_ : DType::F32;
  return type.dtype == wanted ? value : cast_function(value, wanted);
}

std::vector<Value> Graph::emit(const OpDef& op, std::vector<Value> inputs, Attrs attrs) {
  Function& f = current();
  if (op.precision != Precision::Follow && compute_type_ != DType::F32)
    for (Value& v : inputs) v = to_precision(op, v);
  Node node;
  node.op = &op;
  std::vector<Type> types;
  for (const Value& v : inputs) {
    node.inputs.push_back(capture(f, v));
    types.push_back(f.type_of(node.inputs.back()));
    if (types.back().counted() && !op.honours_counts)
      throw UnsupportedError("{}: {} does not honour device counts of a dim yet", scope(), op.name);
  }
  std::vector<Type> outputs;
  try {
    outputs = op.infer(InferContext{attrs, types});
  } catch (const UserError& e) {
    fail(op.name, inputs, e.what());
  }
  node.attrs = std::move(attrs);
  node.scope = scope();
  const auto index = static_cast<int32_t>(f.nodes.size());
  std::vector<Value> values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    node.outputs.push_back(f.add_value(outputs[i], index, static_cast<int32_t>(i)));
    values.push_back({&f, node.outputs.back()});
  }
  f.nodes.push_back(std::move(node));
  return values;
}

Function& Graph::add_function(std::string name) {
  functions_.push_back(
      std::make_unique<Function>(this, static_cast<FunctionId>(functions_.size()), std::move(name), nullptr));
  return *functions_.back();
}

FunctionId Graph::dedupe(FunctionId id) {
  const uint64_t hash = functions_[id]->structural_hash();
  auto [first, last] = by_structure_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (at->second != id && functions_[at->second]->same_structure(*functions_[id])) {
      if (id + 1 == functions_.size()) {
        duplicates_.push_back(std::move(functions_.back()));
        functions_.pop_back();
      }
      return at->second;
    }
  by_structure_.emplace(hash, id);
  return id;
}

Graph::BuiltBody Graph::build_body(const std::string& name, const std::vector<Type>& arguments, const Body& body) {
  // Bodies that were begun inside this one take later ids and are finished first, so a duplicate is always the last.
  auto owned = std::make_unique<Function>(this, 0, name, &current());
  Function& f = *owned;
  std::vector<Value> values;
  for (const Type& type : arguments) values.push_back({&f, f.add_argument(type)});
  std::vector<std::string> outer_scopes;
  outer_scopes.swap(scopes_);
  stack_.push_back(&f);
  try {
    for (const Value& result : body(values)) f.results.push_back(capture(f, result));
  } catch (const Error& e) {
    stack_.pop_back();
    scopes_.swap(outer_scopes);
    const std::string where = scope().empty() ? name : scope() + "." + name;
    if (dynamic_cast<const UnsupportedError*>(&e)) throw UnsupportedError("{}.{}", where, e.what());
    if (dynamic_cast<const UserError*>(&e)) throw ShapeError(where + "." + e.what());
    throw;
  }
  stack_.pop_back();
  scopes_.swap(outer_scopes);

  BuiltBody built;
  for (const auto& [outer, id] : f.captures) built.captured.push_back(outer);
  const uint64_t hash = f.structural_hash();
  auto [first, last] = by_structure_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (functions_[at->second]->same_structure(f)) {
      duplicates_.push_back(std::move(owned));
      built.id = at->second;
      return built;
    }
  built.id = static_cast<FunctionId>(functions_.size());
  f.set_id(built.id);
  functions_.push_back(std::move(owned));
  by_structure_.emplace(hash, built.id);
  return built;
}

std::vector<Value> Graph::emit_control(const OpDef& op, FunctionId body, std::vector<Value> inputs, Attrs attrs,
                                       std::string scope_name) {
  Function& f = current();
  const Function& callee = function(body);
  Node node;
  node.op = &op;
  node.body = body;
  for (const Value& v : inputs) node.inputs.push_back(capture(f, v));
  node.scope = std::move(scope_name);

  const bool is_scan = &op == &scan_op();
  const size_t skip = &op == &predicate_op() ? 1 + static_cast<size_t>(attrs.i("otherwise")) : 0;
  if (node.inputs.size() != callee.arguments.size() + skip)
    fail(op.name, inputs, fmt::format("the body {} takes {} arguments", callee.name(), callee.arguments.size()));
  const size_t carries = is_scan ? static_cast<size_t>(attrs.i("carries")) : 0;
  const size_t xs = is_scan ? static_cast<size_t>(attrs.i("xs")) : 0;
  const int64_t trip = is_scan ? attrs.i("trip") : 1;
  for (size_t i = skip; i < node.inputs.size(); ++i) {
    Type given = f.type_of(node.inputs[i]);
    if (i >= carries && i < carries + xs) {
      if (given.shape.rank() == 0 || given.shape[0] != trip)
        fail(op.name, inputs, fmt::format("operand {} has no first axis of {} steps", i, trip));
      given.shape = Shape(given.shape.dims().subspan(1));
    }
    if (given != callee.type_of(callee.arguments[i - skip]))
      fail(op.name, inputs, fmt::format("operand {} is {}, the body {} takes {}", i, given.to_string(), callee.name(),
                                        callee.type_of(callee.arguments[i - skip]).to_string()));
  }
  const auto index = static_cast<int32_t>(f.nodes.size());
  std::vector<Value> values;
  for (size_t r = 0; r < callee.results.size(); ++r) {
    Type type = callee.type_of(callee.results[r]);
    if (is_scan && r < carries) {
      if (type != callee.type_of(callee.arguments[r]))
        fail(op.name, inputs, fmt::format("carry {} comes in as {} and goes out as {}", r,
                                          callee.type_of(callee.arguments[r]).to_string(), type.to_string()));
    } else if (is_scan) {
      std::vector<int64_t> dims = {trip};
      for (int64_t d : type.shape.dims()) dims.push_back(d);
      type.shape = Shape(dims);
    } else if (skip && type != f.type_of(node.inputs[1 + r])) {
      fail(op.name, inputs, fmt::format("result {} is {}, otherwise {}", r, type.to_string(),
                                        f.type_of(node.inputs[1 + r]).to_string()));
    }
    node.outputs.push_back(f.add_value(type, index, static_cast<int32_t>(r)));
    values.push_back({&f, node.outputs.back()});
  }
  node.attrs = std::move(attrs);
  f.nodes.push_back(std::move(node));
  return values;
}

namespace {

std::string join(const std::string& outer, const std::string& inner) {
  return outer.empty() ? inner : inner.empty() ? outer : outer + "." + inner;
}

}  // namespace

std::vector<Value> Graph::call(const std::string& name, std::vector<Value> arguments, const Body& body) {
  std::vector<Type> types;
  for (const Value& v : arguments) types.push_back(v.type());
  BuiltBody built = build_body(name, types, body);
  arguments.insert(arguments.end(), built.captured.begin(), built.captured.end());
  return emit_control(call_op(), built.id, std::move(arguments), {}, join(scope(), name));
}

std::vector<Value> Graph::scan(const std::string& name, int64_t trip, std::vector<Value> carries, std::vector<Value> xs,
                               const Body& body, bool reverse) {
  if (trip < 0) throw UserError("{}: scan of {} steps", join(scope(), name), trip);
  std::vector<Type> types;
  for (const Value& v : carries) types.push_back(v.type());
  for (const Value& v : xs) {
    Type type = v.type();
    if (type.shape.rank() == 0 || type.shape[0] != trip)
      fail("scan", xs, fmt::format("every sequence has a first axis of {} steps", trip));
    type.shape = Shape(type.shape.dims().subspan(1));
    types.push_back(type);
  }
  BuiltBody built = build_body(name, types, body);
  Attrs attrs{{"trip", trip},
              {"carries", static_cast<int64_t>(carries.size())},
              {"xs", static_cast<int64_t>(xs.size())},
              {"reverse", static_cast<int64_t>(reverse)}};
  std::vector<Value> inputs = std::move(carries);
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  inputs.insert(inputs.end(), built.captured.begin(), built.captured.end());
  return emit_control(scan_op(), built.id, std::move(inputs), std::move(attrs), join(scope(), name));
}

std::vector<Value> Graph::predicate(const std::string& name, Value flag, std::vector<Value> otherwise, const Body& body) {
  if (flag.dtype() != DType::I32 || flag.shape().rank() != 0) fail("predicate", {flag}, "the flag is a rank-0 i32");
  BuiltBody built = build_body(name, {}, body);
  if (function(built.id).results.size() != otherwise.size())
    fail("predicate", otherwise,
         fmt::format("the body gives {} results, otherwise {}", function(built.id).results.size(), otherwise.size()));
  std::vector<Value> inputs = {flag};
  inputs.insert(inputs.end(), otherwise.begin(), otherwise.end());
  inputs.insert(inputs.end(), built.captured.begin(), built.captured.end());
  Attrs attrs{{"otherwise", static_cast<int64_t>(otherwise.size())}};
  return emit_control(predicate_op(), built.id, std::move(inputs), std::move(attrs), join(scope(), name));
}

std::vector<Value> Graph::host_step(const std::string& name, std::vector<Value> inputs, const std::vector<Type>& results,
                                    std::function<std::vector<HostTensor>(std::span<const HostTensor>)> run) {
  Function& f = current();
  Node node;
  node.op = &host_step_op();
  for (const Value& v : inputs) {
    node.inputs.push_back(capture(f, v));
    if (!v.type().plain()) fail("host_step", inputs, "operands are plain");
  }
  node.attrs = {{"step", static_cast<int64_t>(host_steps_.size())}};
  node.scope = join(scope(), name);
  host_steps_.push_back({name, std::move(run)});
  const auto index = static_cast<int32_t>(f.nodes.size());
  std::vector<Value> values;
  for (size_t r = 0; r < results.size(); ++r) {
    node.outputs.push_back(f.add_value(results[r], index, static_cast<int32_t>(r)));
    values.push_back({&f, node.outputs.back()});
  }
  f.nodes.push_back(std::move(node));
  return values;
}

namespace {

std::vector<Type> no_infer(const InferContext& context) { context.fail("control nodes are made by Graph"); }

OpDef control(const char* name) {
  OpDef def;
  def.name = name;
  def.kind = OpKind::Control;
  def.infer = no_infer;
  def.honours_counts = true;
  return def;
}

}  // namespace

const OpDef& call_op() {
  static const OpDef def = control("call");
  return def;
}
const OpDef& scan_op() {
  static const OpDef def = control("scan");
  return def;
}
const OpDef& host_step_op() {
  static const OpDef def = [] {
    OpDef d = control("host_step");
    d.kind = OpKind::Host;
    return d;
  }();
  return def;
}
const OpDef& predicate_op() {
  static const OpDef def = control("predicate");
  return def;
}

}  // namespace hierarchos
