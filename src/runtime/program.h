// A graph compiled for a backend: each distinct body once, to a list of kernels over slots. Binding (Session) expands it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"
#include "ops/operator.h"

namespace hierarchos {

// Where an operand lies, relative to what the caller gives: an argument, a result, or the frame of temporaries.
struct SlotRef {
  enum class Base : uint8_t { Argument, Result, Frame };
  Base base = Base::Frame;
  uint32_t index = 0;   // of the argument or result
  int64_t offset = 0;   // bytes
};

struct PlanStep {
  enum class Kind : uint8_t { Kernel, Call, Scan, Predicate };
  Kind kind = Kind::Kernel;
  const Kernel* kernel = nullptr;  // null for a host step
  int64_t host_step = -1;          // index into Graph::host_steps()
  std::vector<SlotRef> inputs;   // of call, scan, predicate: the body's arguments
  std::vector<SlotRef> outputs;  // of predicate: the memory of `otherwise`, which the results take over
  std::vector<int64_t> input_bytes, output_bytes;  // extents of a kernel's operands, for hazards
  SlotRef scratch;               // the kernel's scratch, or the body's frame
  int64_t scratch_bytes = 0;
  FunctionId body = 0;
  int32_t node = -1;             // index into the function's nodes; -1 for copies that planning added
  std::string scope;
  Cost cost;
  std::shared_ptr<const KernelRequest> request;
  // scan
  int64_t trip = 1;
  size_t carries = 0, xs = 0;
  bool reverse = false;
  std::vector<int64_t> input_stride, output_stride;  // bytes an iteration; 0 for constants and carries
  std::vector<SlotRef> carry_buffers;                // the second memory of carries that are not updated in place
  std::vector<bool> carry_in_place;
  SlotRef flag;  // predicate
};

struct FunctionPlan {
  std::vector<PlanStep> steps;
  int64_t frame_bytes = 0;
  std::vector<int> result_alias;        // argument whose memory a result is, -1: the caller gives memory
  std::vector<bool> argument_modified;  // updated in place
};

struct ProgramOptions {
  bool optimize = true;        // fusion; off: one kernel a node, for the debug mode
};

struct PlanSummary {
  int64_t arena_bytes = 0, parameter_bytes = 0, state_bytes = 0, io_bytes = 0;
  int64_t kernels = 0;             // distinct
  int64_t dispatches = 0;          // of one run
  double flops = 0, bytes = 0;
};

class Program {
 public:
  // Takes the graph, runs the fusion passes on it, plans. Throws UnsupportedError for a node no kernel honours.
  static std::shared_ptr<Program> compile(std::shared_ptr<Graph> graph, Backend& backend, const ProgramOptions& options = {});

  const Graph& graph() const { return *graph_; }
  const FunctionPlan& plan(FunctionId id) const { return plans_[id]; }
  int64_t arena_bytes() const { return plans_[0].frame_bytes; }
  // Identity of kernels, order and memory plan; stored in checkpoints.
  uint64_t plan_hash() const { return plan_hash_; }
  PlanSummary summary() const;
  Backend& backend() const { return *backend_; }

 private:
  friend class Planner;
  std::shared_ptr<Graph> graph_;
  Backend* backend_ = nullptr;
  std::vector<FunctionPlan> plans_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  uint64_t plan_hash_ = 0;
};

}  // namespace hierarchos
