#include "runtime/program.h"

#include <algorithm>

#include "base/hash.h"
#include "passes/passes.h"
#include "runtime/planner.h"

namespace hierarchos {
namespace {

void add_slot(Hasher& h, const SlotRef& s) {
  h.add(static_cast<uint64_t>(s.base));
  h.add(static_cast<uint64_t>(s.index));
  h.add(s.offset);
}

uint64_t hash_of(const std::vector<FunctionPlan>& plans, const std::vector<FunctionId>& order) {
  Hasher h;
  for (FunctionId id : order) {
    const FunctionPlan& plan = plans[id];
    h.add(plan.frame_bytes);
    for (const PlanStep& step : plan.steps) {
      h.add(static_cast<uint64_t>(step.kind));
      h.add(std::string_view(step.kernel ? step.kernel->name() : std::string()));
      h.add(static_cast<uint64_t>(step.body));
      h.add(step.trip);
      for (const auto* list : {&step.inputs, &step.outputs, &step.carry_buffers})
        for (const SlotRef& s : *list) add_slot(h, s);
      add_slot(h, step.scratch);
    }
  }
  return h.value();
}

}  // namespace

std::shared_ptr<Program> Program::compile(std::shared_ptr<Graph> graph, Backend& backend, const ProgramOptions& options) {
  auto program = std::make_shared<Program>();
  program->graph_ = graph;
  program->backend_ = &backend;
  if (options.optimize)
    optimize(*graph);
  else
    eliminate_dead_code(*graph);

  const std::vector<FunctionId> order = reachable(*graph);
  std::vector<bool> in_scan(graph->function_count(), false);
  for (FunctionId id : order)
    for (const Node& node : graph->function(id).nodes)
      if (node.op == &scan_op() || node.op == &predicate_op()) in_scan[node.body] = true;

  program->plans_.resize(graph->function_count());
  KernelCache kernels(backend, program->kernels_);
  for (FunctionId id : order)
    program->plans_[id] =
        FunctionPlanner(*graph, graph->function(id), program->plans_, kernels, backend.alignment(), in_scan[id]).plan();
  program->plan_hash_ = hash_of(program->plans_, order);
  return program;
}

PlanSummary Program::summary() const {
  PlanSummary total;
  total.arena_bytes = arena_bytes();
  for (const Parameter& p : graph_->parameters()) total.parameter_bytes += p.type.bytes();
  for (const State& s : graph_->states()) total.state_bytes += s.type.bytes();
  for (const Input& i : graph_->inputs()) total.io_bytes += i.type.bytes();
  for (const DerivedInput& d : graph_->derived_inputs()) total.io_bytes += d.type.bytes();
  for (const Constant& c : graph_->constants()) total.io_bytes += static_cast<int64_t>(c.data.bytes().size());
  for (const Output& o : graph_->outputs()) total.io_bytes += graph_->root().type_of(o.value).bytes();
  total.kernels = static_cast<int64_t>(kernels_.size());
  // Callees before callers, so one pass adds everything up.
  struct Sums {
    int64_t dispatches = 0;
    double flops = 0, bytes = 0;
  };
  std::vector<Sums> sums(plans_.size());
  for (FunctionId id : reachable(*graph_))
    for (const PlanStep& step : plans_[id].steps) {
      Sums& s = sums[id];
      if (step.kind == PlanStep::Kind::Kernel) {
        s.dispatches += step.kernel ? 1 : 0;
        s.flops += step.cost.flops;
        s.bytes += step.cost.bytes;
      } else {
        const Sums& body = sums[step.body];
        const auto times = static_cast<double>(step.trip);
        s.dispatches += body.dispatches * step.trip;
        s.flops += body.flops * times;
        s.bytes += body.bytes * times;
      }
    }
  total.dispatches = sums[0].dispatches;
  total.flops = sums[0].flops;
  total.bytes = sums[0].bytes;
  return total;
}

}  // namespace hierarchos
