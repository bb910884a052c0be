#include "runtime/planner.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "ops/matmul/matmul/matmul.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos {
namespace {

uint64_t hash_of(const KernelRequest& request) {
  Hasher h;
  h.add(std::string_view(request.op->name));
  h.add(request.attrs.hash());
  for (const auto* list : {&request.inputs, &request.outputs}) {
    h.add(static_cast<uint64_t>(list->size()));
    for (const TensorDesc& d : *list) {
      h.add(static_cast<uint64_t>(d.dtype));
      h.add(static_cast<uint64_t>(d.storage));
      h.add(static_cast<uint64_t>(d.layout));
      h.add(static_cast<uint64_t>(d.shape.rank()));
      for (int a = 0; a < d.shape.rank(); ++a) {
        h.add(d.shape[a]);
        h.add(d.strides[static_cast<size_t>(a)]);
      }
    }
  }
  return h.value();
}

TensorDesc describe(const Type& type, const StridedView& view) {
  TensorDesc d = TensorDesc::contiguous(type);
  d.shape = view.shape;
  d.strides = view.strides;
  return d;
}

int64_t extent_bytes(const TensorDesc& d) {
  if (d.storage != Storage::Plain || d.is_contiguous()) return d.bytes();
  int64_t last = 0;
  for (int a = 0; a < d.shape.rank(); ++a) {
    if (d.shape[a] == 0) return 0;
    last += (d.shape[a] - 1) * d.strides[static_cast<size_t>(a)];
  }
  return (last + 1) * static_cast<int64_t>(size_of(d.dtype));
}

}  // namespace

KernelCache::Made KernelCache::get(KernelRequest request) {
  const uint64_t hash = hash_of(request);
  for (auto [at, end] = made_.equal_range(hash); at != end; ++at) {
    const KernelRequest& known = *at->second.request;
    if (known.op == request.op && known.attrs == request.attrs && known.inputs == request.inputs &&
        known.outputs == request.outputs)
      return at->second;
  }
  kernels_.push_back(make_kernel(backend_, request));
  Made made{kernels_.back().get(), std::make_shared<KernelRequest>(std::move(request))};
  made_.emplace(hash, made);
  return made;
}

int FunctionPlanner::new_memory(int64_t bytes) {
  Memory m;
  m.bytes = bytes;
  memories_.push_back(m);
  return static_cast<int>(memories_.size()) - 1;
}

FunctionPlanner::Place FunctionPlanner::place_of(ValueId v) const {
  const Place& place = places_[v];
  if (place.version != memories_[static_cast<size_t>(place.memory)].version)
    throw UserError("{}: a value is read after the operator that updates its memory in place; use the updated value", f_.name());
  return place;
}

FunctionPlanner::Ref FunctionPlanner::ref_of(ValueId v, const Place& place) const {
  return {place.memory, place.view.offset * static_cast<int64_t>(size_of(f_.type_of(v).dtype))};
}

bool FunctionPlanner::whole(ValueId v, const Place& place) const {
  return place.view.offset == 0 && place.view.is_contiguous() &&
         memories_[static_cast<size_t>(place.memory)].bytes == f_.type_of(v).bytes();
}

void FunctionPlanner::add(Draft draft) {
  const int index = static_cast<int>(drafts_.size());
  const auto touch = [&](const Ref& ref) {
    if (ref.memory < 0) return;
    Memory& m = memories_[static_cast<size_t>(ref.memory)];
    if (m.first < 0) m.first = index;
    m.last = index;
  };
  for (const auto* list : {&draft.inputs, &draft.outputs, &draft.carry_buffers})
    for (const Ref& ref : *list) touch(ref);
  touch(draft.scratch);
  touch(draft.flag);
  drafts_.push_back(std::move(draft));
}

void FunctionPlanner::copy_step(const Type& type, const Place& from, int into, const std::string& scope) {
  if (type.storage != Storage::Plain) throw UnsupportedError("{}: block-quantised values cannot be copied by a program", scope);
  KernelRequest request;
  request.op = &ops::pointwise_def();
  request.attrs = Attrs{{"expr", std::string("o0=i0")},
                        {"dtypes", std::vector<int64_t>{static_cast<int64_t>(type.dtype)}},
                        {"shape", type.shape.to_vector()}};
  request.inputs = {describe(type, from.view)};
  request.outputs = {TensorDesc::contiguous(type)};
  Draft draft;
  auto made = kernels_.get(std::move(request));
  draft.step.kernel = made.kernel;
  draft.step.request = made.request;
  draft.step.scope = scope;
  draft.step.input_bytes = {extent_bytes(made.request->inputs[0])};
  draft.step.output_bytes = {type.bytes()};
  draft.step.cost = {0, 2.0 * static_cast<double>(type.bytes())};
  draft.inputs = {{from.memory, from.view.offset * static_cast<int64_t>(size_of(type.dtype))}};
  draft.outputs = {{into, 0}};
  add(std::move(draft));
}

FunctionPlanner::Place FunctionPlanner::copy(ValueId v, const Place& from, int into) {
  const Type& type = f_.type_of(v);
  if (into < 0) into = new_memory(type.bytes());
  copy_step(type, from, into, "copy");
  return {into, StridedView::contiguous(type.shape), memories_[static_cast<size_t>(into)].version};
}

FunctionPlanner::Place FunctionPlanner::contiguous(ValueId v) {
  Place place = place_of(v);
  if (place.view.is_contiguous()) return place;
  places_[v] = copy(v, place);
  return places_[v];
}

FunctionPlanner::Place FunctionPlanner::owned(ValueId v, const std::string& scope) {
  Place place = contiguous(v);
  const Memory& m = memories_[static_cast<size_t>(place.memory)];
  (void)scope;
  return m.leaf_fixed ? copy(v, place) : place;
}

void FunctionPlanner::plan_view(const Node& node) {
  const ValueId in = node.inputs[0], out = node.outputs[0];
  Place place = place_of(in);
  Place result = place;
  if (f_.type_of(in).storage != Storage::Plain)
    throw UnsupportedError("{}: views of block-quantised values are not supported", node.scope);
  if (!apply_view(*node.op, node.attrs, place.view, f_.type_of(out).shape, &result.view)) {
    place = contiguous(in);
    result = place;
    apply_view(*node.op, node.attrs, place.view, f_.type_of(out).shape, &result.view);
  }
  places_[out] = result;
}

void FunctionPlanner::plan_kernel(const Node& node, int32_t index) {
  KernelRequest request;
  request.op = node.op;
  request.attrs = node.attrs;
  Draft draft;
  draft.step.node = index;
  draft.step.scope = node.scope;
  std::vector<Type> input_types, output_types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    const Type& type = f_.type_of(v);
    input_types.push_back(type);
    Place place = place_of(v);
    const bool updated = std::any_of(node.op->updates.begin(), node.op->updates.end(),
                                     [&](const auto& u) { return u.second == static_cast<int>(i); });
    if (updated) {
      place = owned(v, node.scope);
    } else if (!place.view.is_contiguous() &&
               !(node.op->accepts_strides &&
                 node.op->accepts_strides(node.attrs, static_cast<int>(i), place.view.shape,
                                          {place.view.strides.data(), static_cast<size_t>(place.view.shape.rank())}))) {
      place = contiguous(v);
    }
    request.inputs.push_back(describe(type, place.view));
    draft.inputs.push_back(ref_of(v, place));
    draft.step.input_bytes.push_back(extent_bytes(request.inputs.back()));
  }
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const Type& type = f_.type_of(node.outputs[o]);
    output_types.push_back(type);
    request.outputs.push_back(TensorDesc::contiguous(type));
    draft.step.output_bytes.push_back(type.bytes());
    auto update = std::find_if(node.op->updates.begin(), node.op->updates.end(),
                               [&](const auto& u) { return u.first == static_cast<int>(o); });
    Place place;
    place.view = StridedView::contiguous(type.shape);
    if (update == node.op->updates.end()) {
      place.memory = new_memory(type.bytes());
      draft.outputs.push_back({place.memory, 0});
    } else {
      const Ref& ref = draft.inputs[static_cast<size_t>(update->second)];
      Memory& m = memories_[static_cast<size_t>(ref.memory)];
      ++m.version;
      if (m.base == SlotRef::Base::Argument) plan_.argument_modified[m.index] = true;
      place.memory = ref.memory;
      place.view.offset = ref.offset / static_cast<int64_t>(size_of(type.dtype));
      place.version = m.version;
      draft.outputs.push_back(ref);
    }
    places_[node.outputs[o]] = place;
  }
  if (node.op == &host_step_op()) {
    draft.step.host_step = node.attrs.i("step");
    draft.step.request = std::make_shared<KernelRequest>(std::move(request));
    add(std::move(draft));
    return;
  }
  KernelCache::Made made;
  try {
    made = kernels_.get(std::move(request));
  } catch (const UnsupportedError& e) {
    throw UnsupportedError("{}: {}", node.scope.empty() ? f_.name() : node.scope, e.what());
  }
  draft.step.kernel = made.kernel;
  draft.step.request = made.request;
  draft.step.scratch_bytes = made.kernel->scratch_bytes();
  if (draft.step.scratch_bytes > 0) draft.scratch = {new_memory(draft.step.scratch_bytes), 0};
  if (node.op->cost) {
    draft.step.cost = node.op->cost(node.attrs, input_types, output_types);
  } else {
    for (const Type& t : input_types) draft.step.cost.bytes += static_cast<double>(t.bytes());
    for (const Type& t : output_types) draft.step.cost.bytes += static_cast<double>(t.bytes());
  }
  add(std::move(draft));
}

void FunctionPlanner::plan_call(const Node& node, int32_t index) {
  const FunctionPlan& callee = plans_[node.body];
  Draft draft;
  draft.step.kind = PlanStep::Kind::Call;
  draft.step.body = node.body;
  draft.step.node = index;
  draft.step.scope = node.scope;
  std::vector<Place> arguments;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    arguments.push_back(callee.argument_modified[i] ? owned(v, node.scope) : contiguous(v));
    draft.inputs.push_back(ref_of(v, arguments.back()));
  }
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (callee.argument_modified[i]) {
      Memory& m = memories_[static_cast<size_t>(arguments[i].memory)];
      ++m.version;
      if (m.base == SlotRef::Base::Argument) plan_.argument_modified[m.index] = true;
    }
  for (size_t r = 0; r < node.outputs.size(); ++r) {
    const Type& type = f_.type_of(node.outputs[r]);
    Place place;
    if (callee.result_alias[r] >= 0) {
      place = arguments[static_cast<size_t>(callee.result_alias[r])];
      place.version = memories_[static_cast<size_t>(place.memory)].version;
      place.view.shape = type.shape;
      draft.outputs.push_back(draft.inputs[static_cast<size_t>(callee.result_alias[r])]);
    } else {
      place.memory = new_memory(type.bytes());
      place.view = StridedView::contiguous(type.shape);
      draft.outputs.push_back({place.memory, 0});
    }
    places_[node.outputs[r]] = place;
  }
  draft.step.scratch_bytes = callee.frame_bytes;
  if (callee.frame_bytes > 0) draft.scratch = {new_memory(callee.frame_bytes), 0};
  add(std::move(draft));
}

void FunctionPlanner::plan_scan(const Node& node, int32_t index) {
  const FunctionPlan& callee = plans_[node.body];
  const auto carries = static_cast<size_t>(node.attrs.i("carries")), xs = static_cast<size_t>(node.attrs.i("xs"));
  const int64_t trip = node.attrs.i("trip");
  Draft draft;
  PlanStep& step = draft.step;
  step.kind = PlanStep::Kind::Scan;
  step.body = node.body;
  step.node = index;
  step.scope = node.scope;
  step.trip = trip;
  step.carries = carries;
  step.xs = xs;
  step.reverse = node.attrs.i("reverse") != 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    const bool carry = i < carries;
    if (callee.argument_modified[i] && !(carry && callee.result_alias[i] == static_cast<int>(i)))
      throw UnsupportedError("{}: the scan's body updates operand {} in place, which is no carry that it returns", node.scope, i);
    const Place place = contiguous(v);
    draft.inputs.push_back(ref_of(v, place));
    const bool stacked = !carry && i < carries + xs;
    step.input_stride.push_back(stacked && trip > 0 ? f_.type_of(v).bytes() / trip : 0);
  }
  for (size_t r = 0; r < node.outputs.size(); ++r) {
    const Type& type = f_.type_of(node.outputs[r]);
    Place place{new_memory(type.bytes()), StridedView::contiguous(type.shape), 0};
    places_[node.outputs[r]] = place;
    draft.outputs.push_back({place.memory, 0});
    const bool carry = r < carries;
    step.output_stride.push_back(!carry && trip > 0 ? type.bytes() / trip : 0);
    if (!carry) continue;
    const bool in_place = callee.result_alias[r] == static_cast<int>(r);
    step.carry_in_place.push_back(in_place);
    if (in_place || trip == 0) {
      copy_step(type, contiguous(node.inputs[r]), place.memory, node.scope);
      draft.inputs[r] = {place.memory, 0};
    }
    draft.carry_buffers.push_back(in_place || trip < 2 ? Ref{} : Ref{new_memory(type.bytes()), 0});
  }
  if (trip == 0) return;
  step.scratch_bytes = callee.frame_bytes;
  if (callee.frame_bytes > 0) draft.scratch = {new_memory(callee.frame_bytes), 0};
  add(std::move(draft));
}

void FunctionPlanner::plan_predicate(const Node& node, int32_t index) {
  const FunctionPlan& callee = plans_[node.body];
  const auto otherwise = static_cast<size_t>(node.attrs.i("otherwise"));
  Draft draft;
  PlanStep& step = draft.step;
  step.kind = PlanStep::Kind::Predicate;
  step.body = node.body;
  step.node = index;
  step.scope = node.scope;
  draft.flag = ref_of(node.inputs[0], contiguous(node.inputs[0]));

  std::vector<Place> kept;
  for (size_t o = 0; o < otherwise; ++o) {
    const ValueId v = node.inputs[1 + o];
    Place place = owned(v, node.scope);
    // Two results cannot share memory.
    for (const Place& other : kept)
      if (other.memory == place.memory) {
        place = copy(v, place);
        break;
      }
    kept.push_back(place);
  }
  for (size_t i = 1 + otherwise; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    const auto argument = static_cast<int>(i - 1 - otherwise);
    Place place = contiguous(v);
    for (size_t o = 0; o < otherwise; ++o)
      if (kept[o].memory == place.memory && callee.result_alias[o] != argument) place = copy(v, place);
    if (callee.argument_modified[static_cast<size_t>(argument)]) {
      const bool returned = std::any_of(kept.begin(), kept.end(), [&](const Place& k) { return k.memory == place.memory; });
      if (!returned)
        throw UnsupportedError("{}: the body of a predicate updates a value in place that is not what `otherwise` gives", node.scope);
    }
    draft.inputs.push_back(ref_of(v, place));
  }
  for (size_t o = 0; o < otherwise; ++o) {
    if (callee.result_alias[o] >= 0 && draft.inputs[static_cast<size_t>(callee.result_alias[o])].memory != kept[o].memory)
      throw UnsupportedError("{}: result {} of the predicate's body is an argument other than `otherwise`", node.scope, o);
    Memory& m = memories_[static_cast<size_t>(kept[o].memory)];
    ++m.version;
    if (m.base == SlotRef::Base::Argument) plan_.argument_modified[m.index] = true;
    Place place = kept[o];
    place.version = m.version;
    places_[node.outputs[o]] = place;
    draft.outputs.push_back(ref_of(node.outputs[o], place));
  }
  step.scratch_bytes = callee.frame_bytes;
  if (callee.frame_bytes > 0) draft.scratch = {new_memory(callee.frame_bytes), 0};
  add(std::move(draft));
}

void FunctionPlanner::place_results() {
  plan_.result_alias.assign(f_.results.size(), -1);
  for (size_t r = 0; r < f_.results.size(); ++r) {
    const ValueId v = f_.results[r];
    Place place = place_of(v);
    Memory& m = memories_[static_cast<size_t>(place.memory)];
    const bool simple = whole(v, place);
    if (simple && m.base == SlotRef::Base::Frame && !m.claimed) {
      m.base = SlotRef::Base::Result;
      m.index = static_cast<uint32_t>(r);
      m.claimed = true;
      continue;
    }
    if (simple && m.base == SlotRef::Base::Argument) {
      const int argument = static_cast<int>(m.index);
      const bool taken = std::find(plan_.result_alias.begin(), plan_.result_alias.end(), argument) != plan_.result_alias.end();
      if (!taken && (plan_.argument_modified[m.index] || !copies_unmodified_)) {
        plan_.result_alias[r] = argument;
        continue;
      }
    }
    const int into = new_memory(f_.type_of(v).bytes());
    memories_[static_cast<size_t>(into)].base = SlotRef::Base::Result;
    memories_[static_cast<size_t>(into)].index = static_cast<uint32_t>(r);
    copy_step(f_.type_of(v), place, into, "copy of a result");
  }
}

// Whether the kernel of a step may write its result over `memory`, which it also reads: element by element only.
bool FunctionPlanner::may_write_over(int index, int memory) const {
  const Draft& draft = drafts_[static_cast<size_t>(index)];
  if (draft.step.kind != PlanStep::Kind::Kernel) return false;
  const KernelRequest& request = *draft.step.request;
  const bool pointwise = request.op == &ops::pointwise_def();
  int residual = -1;
  if (request.op == &ops::matmul_def()) residual = ops::matmul_operands(request.attrs).residual;
  if (!pointwise && residual < 0) return false;
  for (size_t i = 0; i < draft.inputs.size(); ++i) {
    if (draft.inputs[i].memory != memory) continue;
    if (!pointwise && static_cast<int>(i) != residual) return false;
    if (draft.inputs[i].offset != 0 || !(request.inputs[i] == request.outputs[0])) return false;
  }
  return true;
}

void FunctionPlanner::place_root() {
  plan_.result_alias.assign(graph_.outputs().size(), -1);
  for (const State& s : graph_.states()) {
    if (s.next == kNoValue) continue;
    const Place place = place_of(s.next);
    const int own = argument_memory_[s.value];
    if (place.memory == own) continue;
    Memory& m = memories_[static_cast<size_t>(place.memory)];
    const Memory& state = memories_[static_cast<size_t>(own)];
    const bool free = m.base == SlotRef::Base::Frame && !m.claimed && whole(s.next, place) && m.first >= 0 && state.version == 0;
    if (free && (state.last < m.first || (state.last == m.first && may_write_over(m.first, own)))) {
      m.base = SlotRef::Base::Argument;
      m.index = state.index;
      m.claimed = true;
    } else {
      copy_step(s.type, place, own, s.name);
    }
    // What still reads the old version (another state that takes it over) is refused.
    ++memories_[static_cast<size_t>(own)].version;
  }
  for (size_t o = 0; o < graph_.outputs().size(); ++o) {
    const ValueId v = graph_.outputs()[o].value;
    const Place place = place_of(v);
    Memory& m = memories_[static_cast<size_t>(place.memory)];
    if (whole(v, place) && m.base == SlotRef::Base::Frame && !m.claimed) {
      m.base = SlotRef::Base::Result;
      m.index = static_cast<uint32_t>(o);
      m.claimed = true;
      continue;
    }
    const int into = new_memory(f_.type_of(v).bytes());
    memories_[static_cast<size_t>(into)].base = SlotRef::Base::Result;
    memories_[static_cast<size_t>(into)].index = static_cast<uint32_t>(o);
    copy_step(f_.type_of(v), place, into, graph_.outputs()[o].name);
  }
}

SlotRef FunctionPlanner::slot(const Ref& ref) const {
  if (ref.memory < 0) return {};
  const Memory& m = memories_[static_cast<size_t>(ref.memory)];
  return {m.base, m.index, m.offset + ref.offset};
}

void FunctionPlanner::assign_offsets() {
  // Levels: steps of one level need no barrier between them, so memory is only used again on a later level.
  std::vector<int> written(memories_.size(), -1), read(memories_.size(), -1);
  for (Draft& draft : drafts_) {
    int level = 0;
    for (const Ref& ref : draft.inputs)
      if (ref.memory >= 0) level = std::max(level, written[static_cast<size_t>(ref.memory)] + 1);
    if (draft.flag.memory >= 0) level = std::max(level, written[static_cast<size_t>(draft.flag.memory)] + 1);
    for (const Ref& ref : draft.outputs) {
      const auto m = static_cast<size_t>(ref.memory);
      level = std::max({level, written[m] + 1, read[m] + 1});
    }
    draft.level = level;
    for (const Ref& ref : draft.inputs)
      if (ref.memory >= 0) read[static_cast<size_t>(ref.memory)] = std::max(read[static_cast<size_t>(ref.memory)], level);
    for (const Ref& ref : draft.outputs) written[static_cast<size_t>(ref.memory)] = level;
  }

  std::map<int64_t, int64_t> holes;  // offset → bytes
  int64_t top = 0;
  const auto align = [&](int64_t n) { return (n + alignment_ - 1) / alignment_ * alignment_; };
  const auto take = [&](int64_t bytes) {
    auto best = holes.end();
    for (auto at = holes.begin(); at != holes.end(); ++at)
      if (at->second >= bytes && (best == holes.end() || at->second < best->second)) best = at;
    if (best != holes.end()) {
      const auto [offset, size] = *best;
      holes.erase(best);
      if (size > bytes) holes.emplace(offset + bytes, size - bytes);
      return offset;
    }
    if (!holes.empty()) {  // the last hole may reach the top
      auto last = std::prev(holes.end());
      if (last->first + last->second == top) {
        const int64_t offset = last->first;
        holes.erase(last);
        top = offset + bytes;
        return offset;
      }
    }
    const int64_t offset = top;
    top += bytes;
    return offset;
  };
  const auto give = [&](int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    auto [at, fresh] = holes.emplace(offset, bytes);
    auto next = std::next(at);
    if (next != holes.end() && at->first + at->second == next->first) {
      at->second += next->second;
      holes.erase(next);
    }
    if (at != holes.begin()) {
      auto before = std::prev(at);
      if (before->first + before->second == at->first) {
        before->second += at->second;
        holes.erase(at);
      }
    }
  };
  std::vector<std::vector<size_t>> starts(drafts_.size()), ends(drafts_.size());
  for (size_t m = 0; m < memories_.size(); ++m) {
    const Memory& memory = memories_[m];
    if (memory.base != SlotRef::Base::Frame || memory.first < 0) continue;
    starts[static_cast<size_t>(memory.first)].push_back(m);
    ends[static_cast<size_t>(memory.last)].push_back(m);
  }
  std::vector<std::pair<int, size_t>> waiting;  // level, memory
  for (size_t s = 0; s < drafts_.size(); ++s) {
    std::erase_if(waiting, [&](const auto& w) {
      if (w.first >= drafts_[s].level) return false;
      give(memories_[w.second].offset, align(memories_[w.second].bytes));
      return true;
    });
    for (size_t m : starts[s]) memories_[m].offset = take(align(memories_[m].bytes));
    for (size_t m : ends[s]) waiting.emplace_back(drafts_[s].level, m);
  }
  plan_.frame_bytes = top;
}

FunctionPlan FunctionPlanner::plan() {
  places_.resize(f_.values.size());
  plan_.argument_modified.assign(f_.arguments.size(), false);
  argument_memory_.assign(f_.values.size(), -1);
  std::vector<bool> is_state(f_.values.size(), f_.id() != 0);
  if (f_.id() == 0)
    for (const State& s : graph_.states()) is_state[s.value] = true;
  for (size_t i = 0; i < f_.arguments.size(); ++i) {
    const ValueId v = f_.arguments[i];
    const int memory = new_memory(f_.type_of(v).bytes());
    Memory& m = memories_[static_cast<size_t>(memory)];
    m.base = SlotRef::Base::Argument;
    m.index = static_cast<uint32_t>(i);
    m.leaf_fixed = !is_state[v];
    argument_memory_[v] = memory;
    places_[v] = {memory, StridedView::contiguous(f_.type_of(v).shape), 0};
  }
  for (size_t n = 0; n < f_.nodes.size(); ++n) {
    const Node& node = f_.nodes[n];
    const auto index = static_cast<int32_t>(n);
    if (node.op->kind == OpKind::View)
      plan_view(node);
    else if (node.op == &call_op())
      plan_call(node, index);
    else if (node.op == &scan_op())
      plan_scan(node, index);
    else if (node.op == &predicate_op())
      plan_predicate(node, index);
    else
      plan_kernel(node, index);
  }
  if (f_.id() == 0)
    place_root();
  else
    place_results();
  assign_offsets();
  for (Draft& draft : drafts_) {
    PlanStep& step = draft.step;
    for (const Ref& ref : draft.inputs) step.inputs.push_back(slot(ref));
    for (const Ref& ref : draft.outputs) step.outputs.push_back(slot(ref));
    for (const Ref& ref : draft.carry_buffers) step.carry_buffers.push_back(slot(ref));
    step.scratch = slot(draft.scratch);
    step.flag = slot(draft.flag);
    plan_.steps.push_back(std::move(step));
  }
  return std::move(plan_);
}

}  // namespace hierarchos
