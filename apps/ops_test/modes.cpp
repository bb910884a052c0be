#include "modes.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/autodiff.h"
#include "runtime/ref_tensor.h"

namespace hierarchos::ops_test {
namespace {

std::vector<NamedTensor> named(const std::vector<HostTensor>& inputs) {
  std::vector<NamedTensor> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) leaves.push_back({input_name(i), inputs[i]});
  return leaves;
}

Report failed(std::string text) { return {Outcome::Failed, std::move(text)}; }

Report expect_refusal(const NamedCase& c) {
  try {
    case_graph(c.c);
  } catch (const UserError& e) {
    if (std::string(e.what()).find(c.c.expect_error) != std::string::npos) return {};
    return failed(fmt::format("says \"{}\", which does not contain \"{}\"", e.what(), c.c.expect_error));
  } catch (const UnsupportedError& e) {
    if (std::string(e.what()).find(c.c.expect_error) != std::string::npos) return {};
    return failed(fmt::format("says \"{}\", which does not contain \"{}\"", e.what(), c.c.expect_error));
  }
  return failed(fmt::format("is accepted; expected an error with \"{}\"", c.c.expect_error));
}

}  // namespace

Report run_test(const NamedCase& c, Device& device) {
  if (c.c.perf) return {Outcome::Skipped, {}};
  if (!c.c.expect_error.empty()) return expect_refusal(c);
  const std::vector<HostTensor> inputs = make_inputs(c);
  const auto reference_graph = case_graph(c.c);
  Interpreter oracle(*reference_graph, true);
  for (const NamedTensor& leaf : named(inputs)) oracle.set(leaf.name, leaf.value);
  oracle.run();

  Loaded loaded = load(case_graph(c.c), *device.backend, named(inputs));
  loaded.session->run();
  std::vector<HostTensor> first;
  for (size_t o = 0; o < reference_graph->outputs().size(); ++o) {
    first.push_back(loaded.session->output(output_name(o)));
    const std::string why = difference(first[o], oracle.output(output_name(o)), bound_for(first[o].dtype(), c.c.tolerance));
    if (!why.empty()) return failed(fmt::format("result {}: {}", o, why));
  }
  for (const State& s : reference_graph->states()) {
    const HostTensor now = loaded.store->download(s.name);
    const std::string why = difference(now, oracle.value(s.name), bound_for(now.dtype(), c.c.tolerance));
    if (!why.empty()) return failed(fmt::format("state {}: {}", s.name, why));
  }
  if (!device.other) return {};
  Loaded again = load(case_graph(c.c), *device.other, named(inputs));
  again.session->run();
  for (size_t o = 0; o < first.size(); ++o)
    if (!std::ranges::equal(first[o].bytes(), again.session->output(output_name(o)).bytes()))
      return failed(fmt::format("result {} depends on the number of threads", o));
  return {};
}

namespace {

// Σ results · fixed weights, over the floating results that the case names. Nothing if there is none.
std::optional<Value> weighted_sum(Graph& graph, const std::vector<Value>& results, std::vector<NamedTensor>& leaves,
                                  const NamedCase& c) {
  std::optional<Value> loss;
  for (size_t r = 0; r < results.size(); ++r) {
    const auto& named_results = c.c.grad_results;
    if (!is_floating(results[r].dtype())) continue;
    if (!named_results.empty() && std::count(named_results.begin(), named_results.end(), static_cast<int>(r)) == 0) continue;
    const Type type(DType::F32, results[r].shape());
    const std::string weight = fmt::format("w{}", r);
    leaves.push_back({weight, to_host(RefTensor{type, draw(c.name(), r, static_cast<size_t>(type.shape.elements()))})});
    const Value term = ops::sum(ops::mul(ops::cast(results[r], DType::F32), graph.input(weight, type)));
    loss = loss ? ops::add(*loss, term) : term;
  }
  return loss;
}

struct GradCase {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::vector<size_t> wanted;                // inputs that are differentiated
  std::vector<std::optional<Value>> grads;   // theirs
  std::vector<NamedTensor> leaves;
  bool any = false;
};

GradCase grad_case(const NamedCase& c, const std::vector<HostTensor>& inputs) {
  GradCase g;
  g.leaves = named(inputs);
  const std::vector<Value> values = declare_inputs(*g.graph, c.c, false);
  const std::vector<Value> results = c.c.build(*g.graph, values);
  std::vector<Value> wrt;
  for (size_t i = 0; i < values.size(); ++i)
    if (is_floating(values[i].dtype()) && values[i].type().storage == Storage::Plain && c.c.inputs[i].differentiable) {
      g.wanted.push_back(i);
      wrt.push_back(values[i]);
    }
  const auto loss = weighted_sum(*g.graph, results, g.leaves, c);
  if (!loss || wrt.empty()) return g;
  g.graph->output("loss", *loss);
  g.grads = gradients(*loss, wrt);
  for (size_t k = 0; k < wrt.size(); ++k)
    if (g.grads[k]) g.graph->output(fmt::format("g{}", k), *g.grads[k]);
  g.any = true;
  return g;
}

// The loss alone, in float64, for central differences.
class Loss {
 public:
  explicit Loss(const NamedCase& c, const GradCase& g) : interpreter_(graph_, true) {
    std::vector<NamedTensor> unused;
    graph_.output("loss", *weighted_sum(graph_, c.c.build(graph_, declare_inputs(graph_, c.c, false)), unused, c));
    for (const NamedTensor& leaf : g.leaves) interpreter_.set(leaf.name, leaf.value);
  }
  double at(const std::string& name, const RefTensor& value) {
    interpreter_.set(name, value);
    interpreter_.run();
    return interpreter_.output("loss").data[0];
  }

 private:
  Graph graph_;
  Interpreter interpreter_;
};

}  // namespace

Report run_grad(const NamedCase& c, Device& device) {
  if (c.c.perf || !c.c.grad || !c.c.expect_error.empty()) return {Outcome::Skipped, {}};
  const std::vector<HostTensor> inputs = make_inputs(c);
  GradCase g = grad_case(c, inputs);
  if (!g.any) return {Outcome::Skipped, {}};
  Interpreter oracle(*g.graph, true);
  for (const NamedTensor& leaf : g.leaves) oracle.set(leaf.name, leaf.value);
  oracle.run();

  // Central differences of elements here and there: all of a small input, some of a large one.
  constexpr size_t kElements = 24;
  Loss loss(c, g);
  for (size_t k = 0; k < g.wanted.size(); ++k) {
    const std::string name = input_name(g.wanted[k]);
    RefTensor value = to_ref(inputs[g.wanted[k]]);
    const RefTensor base = value;
    const std::vector<double> places = draw(name + c.name(), k, kElements);
    double error = 0, norm = 0;
    for (size_t n = 0; n < std::min(kElements, value.data.size()); ++n) {
      const size_t e = value.data.size() <= kElements
                           ? n
                           : static_cast<size_t>((places[n] + 1) / 2 * static_cast<double>(value.data.size() - 1));
      const double h = 1e-5 * std::max(1.0, std::fabs(base.data[e]));
      value.data[e] = base.data[e] + h;
      const double up = loss.at(name, value);
      value.data[e] = base.data[e] - h;
      const double down = loss.at(name, value);
      value.data[e] = base.data[e];
      const double numeric = (up - down) / (2 * h);
      const double ours = g.grads[k] ? oracle.output(fmt::format("g{}", k)).data[e] : 0;
      if (!(std::fabs(ours - numeric) <= 1e-4 * std::max(1.0, std::fabs(numeric))))
        return failed(fmt::format("gradient of input {} at {}: {:.9g}, by differences {:.9g}", g.wanted[k], e, ours, numeric));
      error += (ours - numeric) * (ours - numeric);
      norm += numeric * numeric;
    }
    loss.at(name, base);
    if (std::sqrt(error) > 1e-6 * std::sqrt(norm) + 1e-8)
      return failed(fmt::format("gradient of input {}: {:.3g} from central differences, of norm {:.3g}", g.wanted[k],
                                std::sqrt(error), std::sqrt(norm)));
  }

  // The gradient's kernels. They round a few times more than one operator does.
  double tolerance = c.c.tolerance > 0 ? 4 * c.c.tolerance : 1e-5;
  for (const HostTensor& t : inputs)
    if (is_floating(t.dtype())) tolerance = std::max(tolerance, 4 * bound_for(t.dtype(), 2e-6));
  Loaded loaded = load(grad_case(c, inputs).graph, *device.backend, g.leaves);
  loaded.session->run();
  for (size_t k = 0; k < g.wanted.size(); ++k) {
    if (!g.grads[k]) continue;
    const std::string name = fmt::format("g{}", k);
    const std::string why = difference(loaded.session->output(name), oracle.output(name), tolerance);
    if (!why.empty()) return failed(fmt::format("kernels of the gradient of input {}: {}", g.wanted[k], why));
  }
  return {};
}

namespace {

// Seconds a run, of runs that together take a while.
double seconds_a_run(Backend& backend, Recording& recording) {
  using Clock = std::chrono::steady_clock;
  backend.run(recording, 1);
  backend.wait();
  double best = 1e30;
  int times = 1;
  for (double spent = 0; spent < 0.5;) {
    const auto begin = Clock::now();
    backend.run(recording, times);
    backend.wait();
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    spent += took;
    best = std::min(best, took / times);
    if (took < 0.02) times *= 2;
  }
  return best;
}

}  // namespace

double measure_copy(Backend& backend) {
  auto graph = std::make_shared<Graph>();
  const Type type(DType::F32, Shape{int64_t{32} << 20});
  const Value x = graph->state("x", type), y = graph->state("y", type);
  graph->update(y, ops::neg(x));
  graph->output("o", ops::sum(graph->input("dummy", Type(DType::F32, Shape{1}))));
  Loaded loaded = load(graph, backend, {{"dummy", HostTensor(DType::F32, Shape{1})}});
  const auto recording = backend.record(loaded.session->bound().program);
  return 2.0 * static_cast<double>(type.bytes()) / seconds_a_run(backend, *recording);
}

Report run_perf(const NamedCase& c, Device& device) {
  if (!c.c.perf || !c.c.expect_error.empty()) return {Outcome::Skipped, {}};
  Loaded loaded = load(case_graph(c.c, false), *device.backend, named(make_inputs(c)));
  loaded.session->run();  // checks that all inputs are set
  device.backend->wait();
  const auto recording = device.backend->record(loaded.session->bound().program);
  const double seconds = seconds_a_run(*device.backend, *recording);
  Cost cost;
  for (const PlanStep* step : loaded.session->bound().origins) {
    cost.flops += step->cost.flops;
    cost.bytes += step->cost.bytes;
  }
  return {Outcome::Passed,
          fmt::format("{:.1f} µs, {:.1f} GB/s ({:.0f}% of a copy), {:.1f} GFLOP/s", seconds * 1e6, cost.bytes / seconds / 1e9,
                      100 * cost.bytes / seconds / device.copy_bytes_per_second, cost.flops / seconds / 1e9)};
}

Report run_support(const NamedCase& c, Device& device) {
  if (!c.c.expect_error.empty()) return {Outcome::Skipped, {}};
  Program::compile(case_graph(c.c), *device.backend);
  return {Outcome::Passed, "supported"};
}

}  // namespace hierarchos::ops_test
