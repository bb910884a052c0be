#include "runtime/bind.h"

#include <algorithm>

namespace hierarchos {
namespace {

struct Interval {
  Address begin, end;
};

// What steps since the last barrier read and write.
class Hazards {
 public:
  bool conflict(const std::vector<Interval>& reads, const std::vector<Interval>& writes) const {
    return overlap(reads, writes_) || overlap(writes, writes_) || overlap(writes, reads_);
  }
  void add(const std::vector<Interval>& reads, const std::vector<Interval>& writes) {
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
  }
  void clear() {
    reads_.clear();
    writes_.clear();
  }

 private:
  static bool overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
    for (const Interval& x : a)
      for (const Interval& y : b)
        if (x.begin < y.end && y.begin < x.end) return true;
    return false;
  }
  std::vector<Interval> reads_, writes_;
};

class Binder {
 public:
  explicit Binder(const Program& program) : program_(program) {}

  BoundInfo run(const BindAddresses& addresses) {
    expand(0, addresses.arguments, addresses.results, addresses.arena, "");
    close_group();
    return std::move(out_);
  }

 private:
  struct Bases {
    const std::vector<Address>& arguments;
    const std::vector<Address>& results;
    Address frame;
    Address operator()(const SlotRef& s) const {
      const Address base = s.base == SlotRef::Base::Argument ? arguments[s.index]
                           : s.base == SlotRef::Base::Result ? results[s.index]
                                                             : frame;
      return base + static_cast<Address>(s.offset);
    }
  };

  static std::string join(const std::string& outer, const std::string& inner) {
    return outer.empty() ? inner : inner.empty() ? outer : outer + "." + inner;
  }

  void expand(FunctionId id, const std::vector<Address>& arguments, const std::vector<Address>& results, Address frame,
              const std::string& prefix) {
    const Bases at{arguments, results, frame};
    for (const PlanStep& step : program_.plan(id).steps) {
      switch (step.kind) {
        case PlanStep::Kind::Kernel: emit(step, at, prefix); break;
        case PlanStep::Kind::Call: {
          split_ = true;
          expand(step.body, all(step.inputs, at), all(step.outputs, at), at(step.scratch), join(prefix, step.scope));
          split_ = true;
          break;
        }
        case PlanStep::Kind::Predicate: {
          if (predicate_ >= 0) throw UnsupportedError("{}: a predicate inside a predicate is not supported", join(prefix, step.scope));
          out_.program.predicates.push_back(at(step.flag));
          predicate_ = static_cast<int32_t>(out_.program.predicates.size()) - 1;
          expand(step.body, all(step.inputs, at), all(step.outputs, at), at(step.scratch), join(prefix, step.scope));
          predicate_ = -1;
          break;
        }
        case PlanStep::Kind::Scan: scan(step, at, join(prefix, step.scope)); break;
      }
    }
  }

  static std::vector<Address> all(const std::vector<SlotRef>& slots, const Bases& at) {
    std::vector<Address> out;
    out.reserve(slots.size());
    for (const SlotRef& s : slots) out.push_back(at(s));
    return out;
  }

  void scan(const PlanStep& step, const Bases& at, const std::string& prefix) {
    std::vector<Address> arguments = all(step.inputs, at), results = all(step.outputs, at);
    const std::vector<Address> first_argument = arguments, first_result = results;
    const std::vector<Address> second = all(step.carry_buffers, at);
    for (int64_t i = 0; i < step.trip; ++i) {
      const auto t = static_cast<Address>(step.reverse ? step.trip - 1 - i : i);
      for (size_t a = step.carries; a < arguments.size(); ++a)
        arguments[a] = first_argument[a] + t * static_cast<Address>(step.input_stride[a]);
      for (size_t r = step.carries; r < results.size(); ++r)
        results[r] = first_result[r] + t * static_cast<Address>(step.output_stride[r]);
      for (size_t c = 0; c < step.carries; ++c) {
        if (step.carry_in_place[c]) continue;
        arguments[c] = i == 0 ? first_argument[c] : results[c];
        results[c] = (step.trip - 1 - i) % 2 == 0 ? first_result[c] : second[c];
      }
      split_ = true;
      expand(step.body, arguments, results, at(step.scratch), prefix);
    }
    split_ = true;
  }

  void emit(const PlanStep& step, const Bases& at, const std::string& prefix) {
    BoundStep bound;
    bound.kernel = step.kernel;
    bound.first_operand = static_cast<uint32_t>(out_.program.operands.size());
    bound.inputs = static_cast<uint16_t>(step.inputs.size());
    bound.outputs = static_cast<uint16_t>(step.outputs.size());
    bound.operands = static_cast<uint16_t>(step.inputs.size() + step.outputs.size() + (step.scratch_bytes > 0 ? 1 : 0));
    bound.predicate = predicate_;
    reads_.clear();
    writes_.clear();
    const auto add = [&](const SlotRef& slot, int64_t bytes, std::vector<Interval>& list) {
      const Address address = at(slot);
      out_.program.operands.push_back(address);
      if (bytes > 0) list.push_back({address, address + static_cast<Address>(bytes)});
    };
    for (size_t i = 0; i < step.inputs.size(); ++i) add(step.inputs[i], step.input_bytes[i], reads_);
    for (size_t o = 0; o < step.outputs.size(); ++o) add(step.outputs[o], step.output_bytes[o], writes_);
    if (step.scratch_bytes > 0) add(step.scratch, step.scratch_bytes, writes_);
    if (predicate_ >= 0) {
      const Address flag = out_.program.predicates[static_cast<size_t>(predicate_)];
      reads_.push_back({flag, flag + 4});
    }
    const bool host = step.host_step >= 0;
    if (host && predicate_ >= 0) throw UnsupportedError("{}: a host step inside a predicate", join(prefix, step.scope));
    if (host || hazards_.conflict(reads_, writes_)) {
      bound.barrier_before = true;
      ++out_.barriers;
      close_group();
      hazards_.clear();
    }
    hazards_.add(reads_, writes_);
    longest_ = std::max<int64_t>(longest_, host ? 0 : std::max(1, step.kernel->dependent_dispatches()));
    bound.split_before = split_ && bound.barrier_before;
    if (bound.barrier_before) split_ = false;

    std::string label = join(prefix, step.scope);
    if (out_.program.labels.empty() || out_.program.labels.back() != label) out_.program.labels.push_back(std::move(label));
    bound.label = static_cast<uint32_t>(out_.program.labels.size() - 1);
    out_.program.steps.push_back(bound);
    out_.origins.push_back(&step);
  }

  void close_group() {
    out_.critical_path += longest_;
    longest_ = 0;
  }

  const Program& program_;
  BoundInfo out_;
  Hazards hazards_;
  std::vector<Interval> reads_, writes_;
  int32_t predicate_ = -1;
  bool split_ = false;
  int64_t longest_ = 0;
};

}  // namespace

BoundInfo bind(const Program& program, const BindAddresses& addresses) { return Binder(program).run(addresses); }

}  // namespace hierarchos
