#include "ops/operator.h"

#include <string>
#include <unordered_map>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"

namespace hierarchos {

namespace ops {
#define DECLARE_GRAPH_SIDE(name) \
  const OpDef& name##_def();     \
  void name##_reference(const Attrs&, std::span<const RefTensor* const>, std::span<RefTensor>);
#define DECLARE_CPU(name) std::unique_ptr<Kernel> name##_cpu(CpuBackend&, const KernelRequest&);
#define OPERATOR(name)     \
  DECLARE_GRAPH_SIDE(name) \
  DECLARE_CPU(name)        \
  std::unique_ptr<Kernel> name##_vulkan(VulkanBackend&, const KernelRequest&);
#define OPERATOR_WITHOUT_VULKAN(name) DECLARE_GRAPH_SIDE(name) DECLARE_CPU(name)
#define OPERATOR_WITHOUT_KERNELS(name) DECLARE_GRAPH_SIDE(name)
#include "ops/operators.inc"
#undef OPERATOR
#undef OPERATOR_WITHOUT_VULKAN
#undef OPERATOR_WITHOUT_KERNELS
#undef DECLARE_CPU
#undef DECLARE_GRAPH_SIDE
}  // namespace ops

namespace {

constexpr Operator kOperators[] = {
#define OPERATOR(name) {ops::name##_def, ops::name##_reference, ops::name##_cpu, ops::name##_vulkan},
#define OPERATOR_WITHOUT_VULKAN(name) {ops::name##_def, ops::name##_reference, ops::name##_cpu, nullptr},
#define OPERATOR_WITHOUT_KERNELS(name) {ops::name##_def, ops::name##_reference, nullptr, nullptr},
#include "ops/operators.inc"
#undef OPERATOR
#undef OPERATOR_WITHOUT_VULKAN
#undef OPERATOR_WITHOUT_KERNELS
};

const char* name_of(BackendKind kind) { return kind == BackendKind::Cpu ? "the CPU" : "Vulkan"; }

}  // namespace

std::span<const Operator> all_operators() { return kOperators; }

const Operator& find_operator(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string, const Operator*> map;
    for (const Operator& op : kOperators)
      map.emplace(op.def().name, &op);
    return map;
  }();
  const auto found = by_name.find(std::string(name));
  if (found == by_name.end()) throw UserError("there is no operator {}", name);
  return *found->second;
}

const Operator& operator_of(const OpDef& def) {
  static const auto by_def = [] {
    std::unordered_map<const OpDef*, const Operator*> map;
    for (const Operator& op : kOperators)
      map.emplace(&op.def(), &op);
    return map;
  }();
  const auto found = by_def.find(&def);
  if (found == by_def.end()) throw UserError("{} is a view or control operator: it has no kernels", def.name);
  return *found->second;
}

std::unique_ptr<Kernel> make_kernel(Backend& backend, const KernelRequest& request) {
  const Operator& op = operator_of(*request.op);
  if (backend.kind() == BackendKind::Cpu && op.cpu) return op.cpu(static_cast<CpuBackend&>(backend), request);
  if (backend.kind() == BackendKind::Vulkan && op.vulkan) return op.vulkan(static_cast<VulkanBackend&>(backend), request);
  throw UnsupportedError("{} has no kernel for {}", request.op->name, name_of(backend.kind()));
}

}  // namespace hierarchos
