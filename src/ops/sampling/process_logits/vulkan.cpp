#include <algorithm>

#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> process_logits_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t operands[8];
    uint32_t rows, columns, sequences, edits, chunks;
  };
  const VulkanPipeline* penalties = &backend.pipeline("process_logits/penalties", "main");
  const VulkanPipeline* edits = &backend.pipeline("process_logits/edits", "main");
  Push push{};
  push.rows = narrow(request, request.inputs[0].shape[0]);
  push.columns = narrow(request, request.inputs[0].shape[1]);
  push.sequences = narrow(request, request.inputs[2].shape[0]);
  push.edits = narrow(request, request.inputs[4].shape[1]);
  push.chunks = static_cast<uint32_t>(groups_of(push.columns, 1024));
  auto kernel = std::make_unique<RecordedKernel>("process_logits");
  kernel->dependent = 2;
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    std::copy_n(at.begin(), 8, push.operands);
    dispatch(recorder, *penalties, push, uint64_t{push.rows} * push.chunks);
    recorder.barrier();
    dispatch(recorder, *edits, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
