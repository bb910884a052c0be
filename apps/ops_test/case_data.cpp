#include "case_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

#include "base/rng.h"
#include "quant/blocks.h"
#include "runtime/ref_tensor.h"

namespace hierarchos::ops_test {

bool glob_match(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    for (size_t skip = 0; skip <= text.size(); ++skip)
      if (glob_match(pattern.substr(1), text.substr(skip))) return true;
    return false;
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && glob_match(pattern.substr(1), text.substr(1));
}

std::vector<NamedCase> select_cases(const std::string& op_glob, const std::string& case_glob) {
  std::vector<NamedCase> selected;
  std::set<std::string> names;
  auto registered = registered_op_cases();
  std::sort(registered.begin(), registered.end());  // link order must not matter
  for (const auto& [op, make] : registered) {
    OpCases cases;
    make(cases);
    for (OpCase& c : cases) {
      NamedCase named{op, std::move(c)};
      if (!names.insert(named.name()).second) throw UserError("two cases are called {}", named.name());
      if (glob_match(op_glob, op) && glob_match(case_glob, named.c.name)) selected.push_back(std::move(named));
    }
  }
  return selected;
}

std::string input_name(size_t i) { return fmt::format("i{}", i); }
std::string output_name(size_t i) { return fmt::format("o{}", i); }

namespace {

class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}
  double uniform() { return static_cast<double>(splitmix64(state_) >> 11) * 0x1p-53; }  // [0, 1)
  double normal() {
    const double u = 1 - uniform(), v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(splitmix64(state_) % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

Random random_for(const std::string& name, size_t index) { return Random(fnv1a64(name) + index * 0x9E3779B97F4A7C15u); }

// Where a block holds half-precision scales; the rest of it may be any bits.
std::vector<int64_t> scales_of(Storage storage) {
  switch (storage) {
    case Storage::Q4_1:
    case Storage::Q5_1:
    case Storage::Q4_K:
    case Storage::Q5_K: return {0, 2};
    case Storage::Q2_K: return {80, 82};
    case Storage::Q3_K: return {108};
    case Storage::Q6_K: return {208};
    default: return {0};
  }
}

HostTensor random_blocks(const Type& type, Random& random) {
  HostTensor t(type.dtype, type.shape, type.storage);
  auto bytes = t.mutable_bytes();
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
  for (int64_t block = 0; block < static_cast<int64_t>(bytes.size()); block += block_bytes(type.storage))
    for (int64_t scale : scales_of(type.storage)) {
      const uint16_t half = f32_to_f16(static_cast<float>(0.01 * random.normal()));
      std::memcpy(bytes.data() + block + scale, &half, sizeof half);
    }
  return t;
}

}  // namespace

std::vector<double> draw(const std::string& name, size_t index, size_t count) {
  Random random = random_for(name, 1000 + index);
  std::vector<double> values(count);
  for (double& v : values) v = 2 * random.uniform() - 1;
  return values;
}

std::vector<HostTensor> make_inputs(const NamedCase& named) {
  std::vector<HostTensor> made;
  for (size_t i = 0; i < named.c.inputs.size(); ++i) {
    const OpInput& in = named.c.inputs[i];
    Random random = random_for(named.name(), i);
    if (in.type.storage != Storage::Plain) {
      made.push_back(random_blocks(in.type, random));
      continue;
    }
    const auto count = static_cast<size_t>(in.type.shape.elements());
    std::vector<double> values(count);
    switch (in.fill) {
      case OpInput::Fill::Normal:
        for (double& v : values) v = in.offset + in.scale * random.normal();
        break;
      case OpInput::Fill::Uniform:
        for (double& v : values) v = in.offset + in.scale * (2 * random.uniform() - 1);
        break;
      case OpInput::Fill::Integers:
        if (in.high <= in.low && count > 0) throw UserError("{}: input {} has no integers to choose from", named.name(), i);
        for (double& v : values) v = static_cast<double>(in.low + random.below(in.high - in.low));
        break;
      case OpInput::Fill::Values:
        if (in.values.size() != count)
          throw UserError("{}: input {} has {} values for {}", named.name(), i, in.values.size(), in.type.to_string());
        values = in.values;
        break;
    }
    made.push_back(to_host(RefTensor{in.type, std::move(values)}));
  }
  return made;
}

std::vector<Value> declare_inputs(Graph& graph, const OpCase& c, bool with_states) {
  std::vector<Value> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Type& type = c.inputs[i].type;
    const bool state = with_states && std::count(c.states.begin(), c.states.end(), static_cast<int>(i)) > 0;
    if (state)
      inputs.push_back(graph.state(input_name(i), type));
    else if (type.storage != Storage::Plain)
      inputs.push_back(graph.parameter(input_name(i), type, false));
    else
      inputs.push_back(graph.input(input_name(i), type));
  }
  return inputs;
}

std::shared_ptr<Graph> case_graph(const OpCase& c, bool state_outputs) {
  auto graph = std::make_shared<Graph>();
  const std::vector<Value> inputs = declare_inputs(*graph, c, true);
  const std::vector<Value> results = c.build(*graph, inputs);
  std::set<ValueId> taken_over;
  for (int s : c.states) {
    // The last version of the state: follow the operators that take it over.
    const ValueId first = inputs[static_cast<size_t>(s)].id;
    ValueId last = first;
    for (const Node& node : graph->root().nodes)
      for (const auto& [result, input] : node.op->updates)
        if (node.inputs[static_cast<size_t>(input)] == last) last = node.outputs[static_cast<size_t>(result)];
    if (last == first) continue;
    graph->update(inputs[static_cast<size_t>(s)], {&graph->root(), last});
    taken_over.insert(last);
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (state_outputs || taken_over.count(results[i].id) == 0) graph->output(output_name(i), results[i]);
  return graph;
}

Loaded load(std::shared_ptr<Graph> graph, Backend& backend, const std::vector<NamedTensor>& leaves) {
  Loaded loaded;
  loaded.program = Program::compile(graph, backend);
  loaded.store = std::make_shared<Storehouse>(backend);
  std::set<std::string> stored;
  for (const Parameter& p : graph->parameters()) stored.insert(p.name);
  for (const State& s : graph->states()) stored.insert(s.name);
  for (const NamedTensor& leaf : leaves)
    if (stored.count(leaf.name)) loaded.store->upload(leaf.name, leaf.value);
  loaded.session = std::make_unique<Session>(loaded.program, loaded.store);
  for (const NamedTensor& leaf : leaves)
    if (!stored.count(leaf.name)) loaded.session->set_input(leaf.name, leaf.value);
  poison(loaded);
  return loaded;
}

void poison(Loaded& loaded) {
  const BoundInfo& bound = loaded.session->bound();
  std::set<Address> kept;
  for (const std::string& name : loaded.store->names()) kept.insert(loaded.store->get(name, loaded.store->type(name)));
  std::vector<std::byte> garbage;
  const auto spoil = [&](Address at, int64_t bytes) {
    if (bytes <= 0 || kept.count(at)) return;
    garbage.assign(static_cast<size_t>(bytes), std::byte{0xFF});
    loaded.store->backend().upload(at, garbage);
  };
  for (size_t s = 0; s < bound.program.steps.size(); ++s) {
    const BoundStep& step = bound.program.steps[s];
    const PlanStep& origin = *bound.origins[s];
    for (size_t o = 0; o < origin.output_bytes.size(); ++o) {
      const auto& updates = origin.request->op->updates;
      const bool taken_over = std::any_of(updates.begin(), updates.end(), [&](const auto& u) { return u.first == static_cast<int>(o); });
      if (!taken_over) spoil(bound.program.operands[step.first_operand + step.inputs + o], origin.output_bytes[o]);
    }
    if (origin.scratch_bytes > 0) spoil(bound.program.operands[step.first_operand + step.inputs + step.outputs], origin.scratch_bytes);
  }
}

double bound_for(DType dtype, double tolerance) {
  if (tolerance == 0) return 0;
  if (dtype == DType::BF16) return std::max(tolerance, 0x1p-8);
  if (dtype == DType::F16) return std::max(tolerance, 0x1p-11);
  return tolerance;
}

std::string difference(const HostTensor& ours, const RefTensor& truth, double bound) {
  if (ours.dtype() != truth.type.dtype || ours.shape() != truth.type.shape)
    return fmt::format("is {}{} instead of {}", name_of(ours.dtype()), ours.shape().to_string(), truth.type.to_string());
  const std::vector<double> a = ours.to_doubles();
  const bool exact = bound == 0 || is_integer(ours.dtype());
  double error = 0, norm = 0, worst = 0;
  size_t worst_at = 0, wrong = 0;
  const auto report = [&](size_t i, const std::string& how) {
    return fmt::format("{} at {} of {}: {:.9g} instead of {:.9g}", how, i, a.size(), a[i], truth.data[i]);
  };
  for (size_t i = 0; i < a.size(); ++i) {
    const double b = exact && is_floating(ours.dtype()) ? round_to(ours.dtype(), truth.data[i]) : truth.data[i];
    if (a[i] == b || (std::isnan(a[i]) && std::isnan(b))) {
      if (std::isfinite(b)) norm += b * b;
      continue;
    }
    // What rounds to infinity in our type is infinite.
    if (!std::isfinite(a[i]) || !std::isfinite(b)) {
      if (a[i] == round_to(ours.dtype(), b)) continue;
      return report(i, "is not finite as expected");
    }
    if (exact && wrong == 0) worst_at = i;
    ++wrong;
    const double e = std::fabs(a[i] - b);
    if (!exact && e > worst) {
      worst = e;
      worst_at = i;
    }
    error += e * e;
    norm += b * b;
  }
  if (wrong == 0) return {};
  if (exact) return report(worst_at, fmt::format("{} elements differ, the first", wrong));
  const double relative = norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
  if (relative <= bound) return {};
  return report(worst_at, fmt::format("relative error {:.3g} (bound {:.3g}), the largest", relative, bound));
}

}  // namespace hierarchos::ops_test
