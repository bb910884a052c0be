#include "ops/collective/all_reduce/all_reduce.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"
#include "graph/vjp.h"
#include "ops/common.h"
#include "ops/operator.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "a value");
  expect_floating(c, 0, "the value");
  if (c.attrs.i("devices") < 1) c.fail("a sum over {} devices", c.attrs.i("devices"));
  return {c.inputs[0]};
}

std::vector<std::optional<Value>> vjp(VjpContext& c) {
  if (!c.grads[0]) return {std::nullopt};
  return {all_reduce(*c.grads[0], c.attrs.i("axis"), c.attrs.i("devices"))};
}

// What one device contributes is all there is: a copy.
std::unique_ptr<Kernel> copy_kernel(Backend& backend, const KernelRequest& request) {
  if (request.attrs.i("devices") != 1) throw UnsupportedError("all_reduce over {} devices", request.attrs.i("devices"));
  KernelRequest copy = request;
  copy.op = &pointwise_def();
  copy.attrs = Attrs{{"expr", std::string("o0=i0")},
                     {"dtypes", std::vector<int64_t>{static_cast<int64_t>(request.outputs[0].dtype)}},
                     {"shape", request.outputs[0].shape.to_vector()}};
  return make_kernel(backend, copy);
}

}  // namespace

Value all_reduce(Value x, int64_t axis, int64_t devices) {
  return x.graph().emit1(all_reduce_def(), {x}, {{"axis", axis}, {"devices", devices}});
}

const OpDef& all_reduce_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "all_reduce";
    d.infer = infer;
    d.vjp = vjp;
    return d;
  }();
  return def;
}

void all_reduce_reference(const Attrs& attrs, std::span<const RefTensor* const> in, std::span<RefTensor> out) {
  if (attrs.i("devices") != 1) throw UnsupportedError("all_reduce over {} devices", attrs.i("devices"));
  out[0].data = in[0]->data;
}

std::unique_ptr<Kernel> all_reduce_cpu(CpuBackend& backend, const KernelRequest& request) { return copy_kernel(backend, request); }
std::unique_ptr<Kernel> all_reduce_vulkan(VulkanBackend& backend, const KernelRequest& request) { return copy_kernel(backend, request); }

}  // namespace hierarchos::ops
