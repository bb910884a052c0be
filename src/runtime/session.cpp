#include "runtime/session.h"

#include <algorithm>

namespace hierarchos {

struct Session::Impl {
  Backend* backend = nullptr;
  std::unique_ptr<Buffer> arena, io;
  std::unordered_map<std::string, Address> inputs;   // inputs and derived inputs
  std::unordered_map<std::string, Address> outputs;
  std::unordered_map<std::string, HostTensor> host;  // inputs that derived ones are made from
  // What inputs and derived inputs are to hold: the bytes that changed go to the device together, before a run.
  std::vector<std::byte> staged;
  size_t changed_begin = 0, changed_end = 0;
  std::map<std::string, bool> given;                 // input → set at least once
  bool derived_stale = false;
  BoundInfo bound;

  void stage(Address at, std::span<const std::byte> bytes) {
    const size_t offset = at - io->address();
    std::ranges::copy(bytes, staged.begin() + static_cast<std::ptrdiff_t>(offset));
    const bool none = changed_begin == changed_end;
    changed_begin = none ? offset : std::min(changed_begin, offset);
    changed_end = std::max(none ? 0 : changed_end, offset + bytes.size());
  }
  void upload_staged() {
    if (changed_begin == changed_end) return;
    backend->upload(io->address() + changed_begin, std::span(staged).subspan(changed_begin, changed_end - changed_begin));
    changed_begin = changed_end = 0;
  }

  // Between recordings stand host steps: recordings[i], host_steps[i], recordings[i + 1] …
  std::vector<std::unique_ptr<Recording>> recordings;
  std::vector<size_t> host_steps;  // indices of bound steps
};

namespace {

std::string mib(int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

Session::Session(std::shared_ptr<Program> program, std::shared_ptr<Storehouse> store)
    : program_(std::move(program)), store_(std::move(store)), impl_(std::make_unique<Impl>()) {
  Impl& m = *impl_;
  m.backend = &store_->backend();
  const Graph& graph = program_->graph();
  const int64_t alignment = m.backend->alignment();
  const auto align = [&](int64_t n) { return std::max((n + alignment - 1) / alignment * alignment, alignment); };

  int64_t io_bytes = 0, new_bytes = 0;
  for (const Input& i : graph.inputs()) io_bytes += align(i.type.bytes());
  for (const DerivedInput& d : graph.derived_inputs()) io_bytes += align(d.type.bytes());
  for (const Constant& c : graph.constants()) io_bytes += align(static_cast<int64_t>(c.data.bytes().size()));
  for (const Output& o : graph.outputs()) io_bytes += align(graph.root().type_of(o.value).bytes());
  for (const Parameter& p : graph.parameters())
    if (!store_->has(p.name)) new_bytes += align(p.type.bytes());
  for (const State& s : graph.states())
    if (!store_->has(s.name)) new_bytes += align(s.type.bytes());
  const int64_t need = new_bytes + program_->arena_bytes() + io_bytes, have = m.backend->info().memory_available;
  if (have > 0 && need > have)
    throw DeviceError("this program needs {} more on the device ({} weights and states, {} working memory) and {} are free; use a "
                      "smaller batch, a shorter context or another device",
                      mib(need), mib(new_bytes), mib(program_->arena_bytes()), mib(have));

  BindAddresses at;
  std::vector<Address> leaf(graph.root().values.size(), 0);
  for (const Parameter& p : graph.parameters()) leaf[p.value] = store_->get(p.name, p.type);
  std::vector<const State*> fresh;
  for (const State& s : graph.states()) {
    if (!store_->has(s.name)) fresh.push_back(&s);
    leaf[s.value] = store_->get(s.name, s.type);
  }
  for (const State* s : fresh)
    if (s->reset == Reset::Value && s->initial) store_->upload(s->name, *s->initial);

  if (program_->arena_bytes() > 0) {
    m.arena = m.backend->allocate(program_->arena_bytes(), "arena");
    at.arena = m.arena->address();
  }
  if (io_bytes > 0) m.io = m.backend->allocate(io_bytes, "inputs and outputs");
  Address next = m.io ? m.io->address() : 0;
  const auto place = [&](int64_t bytes) {
    const Address address = next;
    next += static_cast<Address>(align(bytes));
    return address;
  };
  for (const Input& i : graph.inputs()) leaf[i.value] = m.inputs[i.name] = place(i.type.bytes());
  for (const DerivedInput& d : graph.derived_inputs()) leaf[d.value] = m.inputs[d.name] = place(d.type.bytes());
  if (m.io) m.staged.resize(next - m.io->address());
  for (const Constant& c : graph.constants()) {
    leaf[c.value] = place(static_cast<int64_t>(c.data.bytes().size()));
    m.backend->upload(leaf[c.value], c.data.bytes());
  }
  for (const Output& o : graph.outputs()) {
    at.results.push_back(place(graph.root().type_of(o.value).bytes()));
    m.outputs[o.name] = at.results.back();
  }
  for (ValueId v : graph.root().arguments) at.arguments.push_back(leaf[v]);
  m.bound = bind(*program_, at);
  const BoundProgram& all = m.bound.program;
  for (size_t s = 0; s < all.steps.size(); ++s)
    if (!all.steps[s].kernel) m.host_steps.push_back(s);
  if (m.host_steps.empty()) {
    m.recordings.push_back(m.backend->record(all));
    return;
  }
  size_t first = 0;
  for (size_t h = 0; h <= m.host_steps.size(); ++h) {
    const size_t last = h < m.host_steps.size() ? m.host_steps[h] : all.steps.size();
    BoundProgram segment = all;
    segment.steps.assign(all.steps.begin() + static_cast<int64_t>(first), all.steps.begin() + static_cast<int64_t>(last));
    m.recordings.push_back(m.backend->record(segment));
    first = last + 1;
  }
}

Session::~Session() {
  if (impl_ && !impl_->recordings.empty()) {
    try {
      impl_->backend->wait();
    } catch (const Error&) {
      // The device is lost; what follows only frees memory.
    }
  }
}

void Session::set_input(const std::string& name, const HostTensor& value) {
  Impl& m = *impl_;
  const Graph& graph = program_->graph();
  const auto& inputs = graph.inputs();
  auto input = std::find_if(inputs.begin(), inputs.end(), [&](const Input& i) { return i.name == name; });
  if (input == inputs.end()) throw UserError("the program has no input {}", name);
  if (value.dtype() != input->type.dtype || value.shape() != input->type.shape)
    throw UserError("input {} is {}, given {}{}", name, input->type.to_string(), name_of(value.dtype()), value.shape().to_string());
  m.stage(m.inputs.at(name), value.bytes());
  m.given[name] = true;
  if (!graph.derived_inputs().empty()) {
    m.host[name] = value;
    m.derived_stale = true;
  }
}

template <typename T>
void Session::set_input(const std::string& name, const std::vector<T>& values) {
  const auto& inputs = program_->graph().inputs();
  auto input = std::find_if(inputs.begin(), inputs.end(), [&](const Input& i) { return i.name == name; });
  if (input == inputs.end()) throw UserError("the program has no input {}", name);
  set_input(name, HostTensor::from(input->type.dtype, input->type.shape, values));
}
template void Session::set_input<int32_t>(const std::string&, const std::vector<int32_t>&);
template void Session::set_input<float>(const std::string&, const std::vector<float>&);

void Session::run() {
  prepare();
  Impl& m = *impl_;
  for (size_t r = 0; r < m.recordings.size(); ++r) {
    m.backend->run(*m.recordings[r], 1);
    if (r < m.host_steps.size()) run_host_step(m.host_steps[r]);
  }
}

void Session::run_host_step(size_t index) {
  Impl& m = *impl_;
  const BoundStep& step = m.bound.program.steps[index];
  const PlanStep& origin = *m.bound.origins[index];
  const Address* at = m.bound.program.operands.data() + step.first_operand;
  m.backend->wait();
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < step.inputs; ++i) {
    inputs.emplace_back(origin.request->inputs[i].dtype, origin.request->inputs[i].shape);
    m.backend->download(at[i], inputs.back().mutable_bytes());
  }
  const HostStep& host = program_->graph().host_steps()[static_cast<size_t>(origin.host_step)];
  const std::vector<HostTensor> results = host.run(inputs);
  if (results.size() != step.outputs) throw UserError("host step {} gave {} results instead of {}", host.name, results.size(), step.outputs);
  for (size_t o = 0; o < results.size(); ++o) {
    const TensorDesc& d = origin.request->outputs[o];
    if (results[o].dtype() != d.dtype || results[o].shape() != d.shape)
      throw UserError("host step {}: result {} is {}{} instead of {}{}", host.name, o, name_of(results[o].dtype()), results[o].shape().to_string(),
                      name_of(d.dtype), d.shape.to_string());
    m.backend->upload(at[step.inputs + o], results[o].bytes());
  }
}

void Session::prepare() {
  Impl& m = *impl_;
  for (const Input& i : program_->graph().inputs())
    if (!m.given[i.name]) throw UserError("input {} was never set", i.name);
  if (!m.derived_stale) {
    m.upload_staged();
    return;
  }
  for (const DerivedInput& d : program_->graph().derived_inputs()) {
    std::vector<HostTensor> from;
    for (const std::string& name : d.from) from.push_back(m.host.at(name));
    HostTensor value = d.compute(from);
    if (value.dtype() != d.type.dtype || value.shape() != d.type.shape)
      throw UserError("derived input {} is {}, its function gave {}{}", d.name, d.type.to_string(), name_of(value.dtype()),
                      value.shape().to_string());
    m.stage(m.inputs.at(d.name), value.bytes());
    m.host[d.name] = std::move(value);
  }
  m.derived_stale = false;
  m.upload_staged();
}

HostTensor Session::output(const std::string& name) {
  Impl& m = *impl_;
  for (const Output& o : program_->graph().outputs())
    if (o.name == name) {
      const Type& type = program_->graph().root().type_of(o.value);
      HostTensor out(type.dtype, type.shape);
      m.backend->wait();
      m.backend->download(m.outputs.at(name), out.mutable_bytes());
      return out;
    }
  throw UserError("the program has no output {}", name);
}

void Session::reset() {
  for (const State& s : program_->graph().states()) {
    if (s.reset == Reset::Zero) store_->zero(s.name);
    if (s.reset == Reset::Value && s.initial) store_->upload(s.name, *s.initial);
  }
}

const BoundInfo& Session::bound() const { return impl_->bound; }

}  // namespace hierarchos
