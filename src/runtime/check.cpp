// The debug mode: the device beside the reference, kernel by kernel.
#include <cmath>

#include "runtime/ref_tensor.h"
#include "runtime/session.h"

namespace hierarchos {
namespace {

// Downloads what an operand's view spans and picks its elements.
RefTensor fetch(Backend& backend, Address at, const TensorDesc& d, int64_t bytes) {
  Type type(d.dtype, d.shape, d.storage);
  if (d.layout != kRowMajor) {
    type.layout = d.layout;
    return to_ref(values_of_layout(type, at, backend));
  }
  if (d.storage != Storage::Plain || d.is_contiguous()) {
    HostTensor host(d.dtype, d.shape, d.storage);
    if (!host.bytes().empty()) backend.download(at, host.mutable_bytes());
    return to_ref(host);
  }
  HostTensor span(d.dtype, Shape{bytes / static_cast<int64_t>(size_of(d.dtype))});
  if (bytes > 0) backend.download(at, span.mutable_bytes());
  return materialise(to_ref(span), type, d.shape, {d.strides.data(), static_cast<size_t>(d.shape.rank())}, 0);
}

}  // namespace

std::string Session::run_checked(double tolerance) {
  prepare();
  Backend& backend = store_->backend();
  const BoundProgram& bound = this->bound().program;
  for (size_t s = 0; s < bound.steps.size(); ++s) {
    const BoundStep& step = bound.steps[s];
    const PlanStep& origin = *this->bound().origins[s];
    const KernelRequest& request = *origin.request;
    if (origin.host_step >= 0) {
      run_host_step(s);
      continue;
    }
    if (step.predicate >= 0) {
      int32_t flag = 0;
      backend.download(bound.predicates[static_cast<size_t>(step.predicate)], std::as_writable_bytes(std::span(&flag, 1)));
      if (flag == 0) continue;
    }
    std::vector<RefTensor> inputs;
    for (size_t i = 0; i < request.inputs.size(); ++i)
      inputs.push_back(fetch(backend, bound.operands[step.first_operand + i], request.inputs[i], origin.input_bytes[i]));
    std::vector<const RefTensor*> pointers;
    for (const RefTensor& t : inputs) pointers.push_back(&t);
    std::vector<RefTensor> expected;
    for (const TensorDesc& d : request.outputs)
      expected.push_back({Type(d.dtype, d.shape), std::vector<double>(static_cast<size_t>(d.shape.elements()))});
    for (const auto& [result, input] : request.op->updates)
      expected[static_cast<size_t>(result)].data = inputs[static_cast<size_t>(input)].data;
    const Operator& op = operator_of(*request.op);
    if (!op.reference) throw UnsupportedError("{} has no reference", request.op->name);
    op.reference(request.attrs, pointers, expected);

    BoundProgram one;
    one.labels = {bound.labels[step.label]};
    one.steps = {step};
    one.steps[0].label = 0;
    one.steps[0].first_operand = 0;
    one.steps[0].predicate = -1;
    one.steps[0].barrier_before = one.steps[0].split_before = false;
    one.operands.assign(bound.operands.begin() + step.first_operand,
                        bound.operands.begin() + step.first_operand + step.operands);
    auto recording = backend.record(one);
    backend.run(*recording, 1);
    backend.wait();

    for (size_t o = 0; o < request.outputs.size(); ++o) {
      const RefTensor ours = fetch(backend, one.operands[request.inputs.size() + o], request.outputs[o], origin.output_bytes[o]);
      const bool integer = is_integer(ours.type.dtype);
      double error = 0, norm = 0;
      size_t wrong = 0, first = ours.data.size();
      for (size_t i = 0; i < ours.data.size(); ++i) {
        const double a = ours.data[i], b = expected[o].data[i];
        if (a == b || (std::isnan(a) && std::isnan(b))) {
          norm += std::isfinite(b) ? b * b : 0;
          continue;
        }
        ++wrong;
        first = std::min(first, i);
        error += (a - b) * (a - b);
        norm += b * b;
      }
      const double relative = std::sqrt(error) / std::max(std::sqrt(norm), 1e-30);
      if (integer ? wrong > 0 : wrong > 0 && !(relative <= tolerance))
        return fmt::format("{}: {} ({}) differs from the reference in result {}: relative error {:.3g}, {} of {} elements, first at {}: "
                           "{:.9g} instead of {:.9g}",
                           bound.labels[step.label], request.op->name, step.kernel->name(), o, relative, wrong, ours.data.size(),
                           first, ours.data[first], expected[o].data[first]);
    }
  }
  return {};
}

}  // namespace hierarchos
