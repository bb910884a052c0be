#include "ops/operator.h"

#include <string>
#include <unordered_map>

#include "backend/cpu/cpu_backend.h"
#if __has_include("backend/vulkan/vulkan_backend.h")
#include "backend/vulkan/vulkan_backend.h"
#define HIERARCHOS_HAS_VULKAN 1
#endif

namespace hierarchos {

// Weak: an operator may lack a kernel; the symbol is null then.
namespace ops {
#define OPERATOR(name)                                                                                     \
  [[gnu::weak]] const OpDef& name##_def();                                                                 \
  [[gnu::weak]] void name##_reference(const Attrs&, std::span<const RefTensor* const>, std::span<RefTensor>); \
  [[gnu::weak]] std::unique_ptr<Kernel> name##_cpu(CpuBackend&, const KernelRequest&);                     \
  [[gnu::weak]] std::unique_ptr<Kernel> name##_vulkan(VulkanBackend&, const KernelRequest&);
#include "ops/operators.inc"
#undef OPERATOR
}  // namespace ops

namespace {

constexpr Operator kOperators[] = {
#define OPERATOR(name) {ops::name##_def, ops::name##_reference, ops::name##_cpu, ops::name##_vulkan},
#include "ops/operators.inc"
#undef OPERATOR
};

const char* name_of(BackendKind kind) { return kind == BackendKind::Cpu ? "the CPU" : "Vulkan"; }

}  // namespace

std::span<const Operator> all_operators() { return kOperators; }

const Operator& find_operator(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string, const Operator*> map;
    for (const Operator& op : kOperators)
      if (op.def) map.emplace(op.def().name, &op);
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
      if (op.def) map.emplace(&op.def(), &op);
    return map;
  }();
  const auto found = by_def.find(&def);
  if (found == by_def.end()) throw UserError("{} is a view or control operator: it has no kernels", def.name);
  return *found->second;
}

std::unique_ptr<Kernel> make_kernel(Backend& backend, const KernelRequest& request) {
  const Operator& op = operator_of(*request.op);
  if (backend.kind() == BackendKind::Cpu && op.cpu) return op.cpu(static_cast<CpuBackend&>(backend), request);
#ifdef HIERARCHOS_HAS_VULKAN
  if (backend.kind() == BackendKind::Vulkan && op.vulkan) return op.vulkan(static_cast<VulkanBackend&>(backend), request);
#endif
  throw UnsupportedError("{} has no kernel for {}", request.op->name, name_of(backend.kind()));
}

}  // namespace hierarchos
