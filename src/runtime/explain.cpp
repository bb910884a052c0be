#include "runtime/explain.h"

#include <algorithm>
#include <map>

#include "ops/pointwise/pointwise.h"
#include "passes/passes.h"

namespace hierarchos {
namespace {

std::string bytes_text(double n) {
  const char* unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (n >= 1024 && u < 4) {
    n /= 1024;
    ++u;
  }
  return u ? fmt::format("{:.2f} {}", n, unit[u]) : fmt::format("{:.0f} B", n);
}

std::string flops_text(double n) {
  const char* unit[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
  int u = 0;
  while (n >= 1000 && u < 5) {
    n /= 1000;
    ++u;
  }
  return fmt::format("{:.2f} {}", n, unit[u]);
}

// Scopes of the root's control nodes.
std::vector<std::string> call_scopes(const Graph& graph) {
  std::vector<std::string> out;
  for (const Node& node : graph.root().nodes)
    if (node.op->kind == OpKind::Control) out.push_back(node.scope);
  return out;
}

bool inside(const std::string& label, const std::string& scope) {
  return !scope.empty() && label.compare(0, scope.size(), scope) == 0 && (label.size() == scope.size() || label[scope.size()] == '.');
}

}  // namespace

std::vector<ScopeWork> work_by_scope(const Session& session) {
  const BoundInfo& bound = session.bound();
  const std::vector<std::string> scopes = call_scopes(session.program().graph());
  std::vector<ScopeWork> out;
  std::map<std::string, size_t> index;
  std::map<std::string, int64_t> longest;  // of the scope's kernels since the last barrier, in dependent dispatches
  const auto close_group = [&] {
    for (auto& [scope, chain] : longest) out[index.at(scope)].dependent += chain;
    longest.clear();
  };
  for (size_t s = 0; s < bound.program.steps.size(); ++s) {
    const BoundStep& step = bound.program.steps[s];
    if (step.barrier_before) close_group();
    const std::string& label = bound.program.labels[step.label];
    std::string scope;
    for (const std::string& candidate : scopes)
      if (inside(label, candidate) && candidate.size() > scope.size()) scope = candidate;
    if (index.emplace(scope, out.size()).second) out.push_back({scope, 0, 0, 0, 0});
    ScopeWork& work = out[index.at(scope)];
    ++work.dispatches;
    work.flops += bound.origins[s]->cost.flops;
    work.bytes += bound.origins[s]->cost.bytes;
    if (step.kernel) longest[scope] = std::max<int64_t>(longest[scope], std::max(1, step.kernel->dependent_dispatches()));
  }
  close_group();
  return out;
}

std::string explain(const Session& session, const ExplainOptions& options) {
  const Program& program = session.program();
  const Graph& graph = program.graph();
  const BoundInfo& bound = session.bound();
  const PlanSummary sum = program.summary();
  const DeviceInfo device = program.backend().info();
  std::string out = fmt::format("device      {} ({})\nplan        {:016x}, {} distinct kernels\n", device.name, device.driver,
                                program.plan_hash(), sum.kernels);

  // Bodies: how often each is called.
  std::map<FunctionId, int64_t> calls;
  for (FunctionId id : reachable(graph))
    for (const Node& node : graph.function(id).nodes)
      if (node.op->kind == OpKind::Control) calls[node.body] += node.op == &scan_op() ? node.attrs.i("trip") : 1;
  out += "bodies      ";
  bool first = true;
  for (const auto& [id, count] : calls) {
    out += fmt::format("{}{} × {}", first ? "" : ", ", count, graph.function(id).name());
    first = false;
  }
  out += first ? "none\n" : "\n";

  struct OperatorWork {
    int64_t dispatches = 0;
    double flops = 0, bytes = 0;
  };
  std::map<std::string, OperatorWork> operators;
  for (const PlanStep* origin : bound.origins) {
    OperatorWork& work = operators[origin->request->op->name];
    ++work.dispatches;
    work.flops += origin->cost.flops;
    work.bytes += origin->cost.bytes;
  }
  out += fmt::format("\n{:<26}{:>10}{:>16}{:>14}\n", "operator", "dispatches", "work", "traffic");
  for (const auto& [name, work] : operators)
    out += fmt::format("{:<26}{:>10}{:>16}{:>14}\n", name, work.dispatches, flops_text(work.flops), bytes_text(work.bytes));

  out += fmt::format("\n{:<26}{:>10}{:>10}{:>16}{:>14}\n", "scope", "dispatches", "dependent", "work", "traffic");
  std::vector<ScopeWork> scopes = work_by_scope(session);
  for (size_t s = 0; s < scopes.size();) {
    // Runs of equal layers are one line.
    size_t end = s + 1;
    while (end < scopes.size() && scopes[end].dispatches == scopes[s].dispatches && scopes[end].dependent == scopes[s].dependent &&
           scopes[end].flops == scopes[s].flops && !scopes[s].scope.empty() && !scopes[end].scope.empty())
      ++end;
    std::string name = scopes[s].scope.empty() ? "(outside calls)" : scopes[s].scope;
    if (end - s > 1) name += fmt::format(" … {}", scopes[end - 1].scope.substr(scopes[end - 1].scope.rfind('.') + 1));
    out += fmt::format("{:<26}{:>10}{:>10}{:>16}{:>14}{}\n", name, scopes[s].dispatches, scopes[s].dependent, flops_text(scopes[s].flops),
                       bytes_text(scopes[s].bytes), end - s > 1 ? fmt::format("  each, {} times", end - s) : "");
    s = end;
  }

  out += fmt::format("\ndispatches  {}\nbarriers    {}\ncritical    {} dependent dispatches\nwork        {}\ntraffic     {}\n",
                     bound.program.steps.size(), bound.barriers, bound.critical_path, flops_text(sum.flops), bytes_text(sum.bytes));
  out += fmt::format("memory      {} parameters, {} states, {} working memory, {} inputs and outputs\n",
                     bytes_text(static_cast<double>(sum.parameter_bytes)), bytes_text(static_cast<double>(sum.state_bytes)),
                     bytes_text(static_cast<double>(sum.arena_bytes)), bytes_text(static_cast<double>(sum.io_bytes)));
  if (!options.kernels) return out;

  for (FunctionId id : reachable(graph)) {
    out += fmt::format("\n{} (frame {})\n", graph.function(id).name(), bytes_text(static_cast<double>(program.plan(id).frame_bytes)));
    for (const PlanStep& step : program.plan(id).steps) {
      if (step.kind != PlanStep::Kind::Kernel) {
        out += fmt::format("  {:<44} × {}\n", step.scope + " → " + graph.function(step.body).name(), step.trip);
        continue;
      }
      std::string result;
      for (const TensorDesc& d : step.request->outputs)
        result += fmt::format("{}{}{}", result.empty() ? "" : ", ", name_of(d.dtype), d.shape.to_string());
      std::string detail;
      if (step.request->op == &ops::pointwise_def()) detail = "  " + step.request->attrs.s("expr");
      out += fmt::format("  {:<32} {:<28} {}{}\n", step.scope, step.kernel ? step.kernel->name() : "host step", result, detail);
    }
  }
  return out;
}

}  // namespace hierarchos
