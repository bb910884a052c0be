// The static graph of tensor operators. Models write into a Graph with the builders of ops/ and nn/; passes rewrite it;
// runtime/ plans and runs it.
//
// A Graph owns one root Function and the bodies that call, scan and predicate use. Inside a body any value of an
// enclosing function may be used: it becomes an argument of the body (captured), so that a layer reads like the paper
// and still is one Function however often it is called. Bodies with the same structure are one Function.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/op.h"
#include "tensor/host_tensor.h"

namespace hierarchos {

class Function;
using ValueId = uint32_t;
using FunctionId = uint32_t;
inline constexpr ValueId kNoValue = ~ValueId{0};

// A handle to a value of a function under construction.
struct Value {
  Function* function = nullptr;
  ValueId id = kNoValue;

  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  Graph& graph() const;
  explicit operator bool() const { return function != nullptr; }
  friend bool operator==(const Value&, const Value&) = default;
};

struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string scope;                     // relative to the body: "self_attn.q_proj"
  FunctionId body = ~FunctionId{0};      // of call, scan, predicate
  int placement = 0;                     // device group; collectives move between them
};

struct ValueInfo {
  Type type;
  int32_t producer = -1;  // index of the node, -1 for arguments and leaves
  int32_t output = 0;     // which result of that node
};

class Function {
 public:
  Function(Graph* graph, FunctionId id, std::string name, Function* parent)
      : graph_(graph), id_(id), name_(std::move(name)), parent_(parent) {}

  Graph& graph() const { return *graph_; }
  FunctionId id() const { return id_; }
  void set_id(FunctionId id) { id_ = id; }
  const std::string& name() const { return name_; }
  Function* parent() const { return parent_; }

  std::vector<ValueId> arguments;  // of the root: all leaves, in order of declaration
  std::deque<ValueInfo> values;  // references to types stay good while nodes are added
  std::vector<Node> nodes;  // in a valid order of execution
  std::vector<ValueId> results;

  ValueId add_argument(Type type);
  ValueId add_value(Type type, int32_t producer, int32_t output);
  const Type& type_of(ValueId id) const { return values[id].type; }
  // Structure only: operators, attributes, types, wiring, bodies. Names and scopes do not count.
  uint64_t structural_hash() const;
  bool same_structure(const Function& other) const;
  // After nodes were added, removed or reordered: sets every ValueInfo::producer.
  void renumber();
  std::string to_string() const;  // one line a node

  // Captured values of enclosing functions, while the body is built: outer value → argument.
  std::vector<std::pair<Value, ValueId>> captures;

 private:
  Graph* graph_;
  FunctionId id_;
  std::string name_;
  Function* parent_;
};

struct Parameter {
  std::string name;
  Type type;
  bool trainable = true;
  std::string tie_group;         // parameters of one group share storage and gradient; usually empty
  std::vector<int> sharding;     // mesh axis a dim is split over, -1 not; empty: replicated
  ValueId value = kNoValue;
};

enum class Reset : uint8_t { Zero, Keep, Value };  // what Session::reset does with a state

struct State {
  std::string name;
  Type type;
  bool checkpointed = true;
  Reset reset = Reset::Zero;
  std::shared_ptr<HostTensor> initial;  // for Reset::Value
  ValueId value = kNoValue;
  ValueId next = kNoValue;  // set by Graph::update; must alias `value`
};

struct Input {
  std::string name;
  Type type;
  int ring = 2;
  ValueId value = kNoValue;
};

// Made on the host from inputs before each run: sorted ids, segments, RoPE tables, ROSA ids, block lists.
struct DerivedInput {
  std::string name;
  Type type;
  std::vector<std::string> from;  // names of inputs (or of derived inputs declared before)
  std::function<HostTensor(std::span<const HostTensor>)> compute;
  int ring = 2;
  ValueId value = kNoValue;
};

struct Constant {
  HostTensor data;
  ValueId value = kNoValue;
};

struct Output {
  std::string name;
  int ring = 2;
  ValueId value = kNoValue;
};

// Work that only the host can do, in the middle of a program: the device stops before it and goes on after.
struct HostStep {
  std::string name;
  std::function<std::vector<HostTensor>(std::span<const HostTensor>)> run;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Leaves. All are values of the root, usable in any body. Declaring a name again with the same type gives the same value.
  Value parameter(const std::string& name, Type type, bool trainable = true, std::string tie_group = {});
  Value state(const std::string& name, Type type, bool checkpointed = true, Reset reset = Reset::Zero);
  Value input(const std::string& name, Type type, int ring = 2);
  Value derived(const std::string& name, Type type, std::vector<std::string> from,
                std::function<HostTensor(std::span<const HostTensor>)> compute, int ring = 2);
  Value constant(HostTensor data);
  CountId count(Value rank0_i32);  // a device count for Type::counts
  void output(const std::string& name, Value value, int ring = 2);
  // state ← value. The value must come from the state through operators that update in place, or is copied over it
  // at the end.
  void update(Value state, Value value);

  // Adds a node to the function under construction. Operands of enclosing functions are captured.
  std::vector<Value> emit(const OpDef& op, std::vector<Value> inputs, Attrs attrs = {});
  Value emit1(const OpDef& op, std::vector<Value> inputs, Attrs attrs = {}) {
    return emit(op, std::move(inputs), std::move(attrs))[0];
  }

  // The type that products and attention compute in, from here on: floating operands of operators with
  // Precision::Compute are cast to it, those of Precision::Full to fp32, as nodes are emitted (so before autodiff, and once
  // a body). F32 (the default) changes nothing.
  void set_compute_type(DType dtype) { compute_type_ = dtype; }
  DType compute_type() const { return compute_type_; }
  // Installed by ops/pointwise, which the graph does not know: emits a cast.
  using CastFn = Value (*)(Value, DType);
  static void set_cast(CastFn cast);

  using Body = std::function<std::vector<Value>(std::span<const Value> arguments)>;
  // A body once; results are the body's.
  std::vector<Value> call(const std::string& scope, std::vector<Value> arguments, const Body& body);
  // for t in 0 … trip-1 (from the end when `reverse`): carries, ys[t] = body(carries, xs[t]…). Results: last carries,
  // then ys stacked along a new first axis. xs have a first axis of `trip`.
  std::vector<Value> scan(const std::string& scope, int64_t trip, std::vector<Value> carries, std::vector<Value> xs,
                          const Body& body, bool reverse = false);
  // flag (rank-0 I32) ≠ 0: body's results, else `otherwise`. Results take over the memory of `otherwise`.
  std::vector<Value> predicate(const std::string& scope, Value flag, std::vector<Value> otherwise, const Body& body);

  // Results of a function of the host over values of the program, of the given types. It has no gradient.
  std::vector<Value> host_step(const std::string& name, std::vector<Value> inputs, const std::vector<Type>& results,
                               std::function<std::vector<HostTensor>(std::span<const HostTensor>)> run);

  Function& root() { return *functions_[0]; }
  const Function& root() const { return *functions_[0]; }
  Function& current() { return *stack_.back(); }
  Function& function(FunctionId id) { return *functions_[id]; }
  const Function& function(FunctionId id) const { return *functions_[id]; }
  size_t function_count() const { return functions_.size(); }
  // A new empty function, for passes that write one by hand.
  Function& add_function(std::string name);
  // Makes `function` the one that emit() writes to, for passes.
  void push(Function& function) { stack_.push_back(&function); }
  void pop() { stack_.pop_back(); }
  // Emits a control node over an existing function (captures must be resolved): for passes.
  std::vector<Value> emit_control(const OpDef& op, FunctionId body, std::vector<Value> inputs, Attrs attrs, std::string scope);
  // The function with this structure that is already there, else `id` itself.
  FunctionId dedupe(FunctionId id);

  std::string scope() const;  // scopes open now, joined by dots
  void open_scope(const std::string& name) { scopes_.push_back(name); }
  void close_scope() { scopes_.pop_back(); }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<State>& states() const { return states_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<DerivedInput>& derived_inputs() const { return derived_; }
  const std::vector<Constant>& constants() const { return constants_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  std::vector<Output>& outputs() { return outputs_; }
  std::vector<State>& states() { return states_; }
  const std::vector<ValueId>& counts() const { return counts_; }
  const std::vector<HostStep>& host_steps() const { return host_steps_; }

 private:
  Value leaf(const std::string& name, const Type& type, bool* fresh);
  ValueId capture(Function& into, Value value);
  Value to_precision(const OpDef& op, Value value);
  struct BuiltBody {
    FunctionId id;
    std::vector<Value> captured;  // values of the enclosing function, in the order of the body's last arguments
  };
  BuiltBody build_body(const std::string& name, const std::vector<Type>& arguments, const Body& body);
  [[noreturn]] void fail(const std::string& op, const std::vector<Value>& inputs, const std::string& what) const;

  std::vector<std::unique_ptr<Function>> functions_;
  std::vector<std::unique_ptr<Function>> duplicates_;  // kept so that handles into them stay valid
  std::vector<Function*> stack_;
  std::vector<std::string> scopes_;
  DType compute_type_ = DType::F32;
  std::vector<Parameter> parameters_;
  std::vector<State> states_;
  std::vector<Input> inputs_;
  std::vector<DerivedInput> derived_;
  std::vector<Constant> constants_;
  std::vector<Output> outputs_;
  std::vector<ValueId> counts_;
  std::vector<HostStep> host_steps_;
  std::unordered_map<std::string, ValueId> leaves_;
  std::unordered_multimap<uint64_t, FunctionId> by_structure_;
};

// Opens a scope for the nodes emitted while it lives.
class Scope {
 public:
  Scope(Graph& graph, const std::string& name) : graph_(graph) { graph_.open_scope(name); }
  ~Scope() { graph_.close_scope(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Graph& graph_;
};

// Control operators (graph/control.cpp). call: inputs are the arguments. scan: carries, xs, then captured constants;
// attrs trip, carries, xs, reverse. predicate: flag, otherwise, then the body's arguments; attrs otherwise.
const OpDef& call_op();
const OpDef& scan_op();
const OpDef& predicate_op();
const OpDef& host_step_op();  // attr step: index into Graph::host_steps()

}  // namespace hierarchos
