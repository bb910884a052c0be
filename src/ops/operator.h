// An operator: what the graph knows of it, its reference, and its kernels. A new operator is a folder under ops/<kind>/
// and one line in ops/operators.inc.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "graph/graph.h"

namespace hierarchos {

class CpuBackend;
class VulkanBackend;

// A tensor of the reference: elements as doubles (integers and flags exactly), row-major. Block storage is decoded.
struct RefTensor {
  Type type;
  std::vector<double> data;
};

// The plainest correct loops, in float64. `outputs` have their type set and data sized (zeroed); for an updating
// operator the result starts as a copy of the input it takes over. The caller rounds results to their dtype unless it
// wants float64.
using ReferenceFn = void (*)(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs);

// Make a kernel for a request. Throws UnsupportedError naming what the kernel does not honour.
using CpuFactory = std::unique_ptr<Kernel> (*)(CpuBackend&, const KernelRequest&);
using VulkanFactory = std::unique_ptr<Kernel> (*)(VulkanBackend&, const KernelRequest&);

struct Operator {
  const OpDef& (*def)() = nullptr;
  ReferenceFn reference = nullptr;
  CpuFactory cpu = nullptr;
  VulkanFactory vulkan = nullptr;
};

// All operators, in the order of ops/operators.inc. View and control operators have no kernels.
std::span<const Operator> all_operators();
const Operator& find_operator(std::string_view name);  // throws UserError
const Operator& operator_of(const OpDef& def);

// Dispatches to the operator's factory for the backend; UnsupportedError names the operator when it has none.
std::unique_ptr<Kernel> make_kernel(Backend& backend, const KernelRequest& request);

}  // namespace hierarchos
