#include "ops/vulkan_kernel.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> sample_vulkan(VulkanBackend& backend, const KernelRequest& request) {
  struct Push {
    uint64_t scores, settings, keys, steps, ids, facts, scratch, row_bytes;
    uint32_t rows, columns, chunks;
  };
  // Sizes of sample.slang: elements of a chunk, blocks of a chunk, bytes that are kept of each chunk and of a row.
  constexpr uint64_t kChunk = 1024, kBlocks = 16, kChunkBytes = 8 + 4 * 4 + kBlocks * 4, kRowBytes = 16;
  const VulkanPipeline* survey = &backend.pipeline("sample/survey", "main");
  const VulkanPipeline* plan = &backend.pipeline("sample/plan", "main");
  const VulkanPipeline* count = &backend.pipeline("sample/count", "main");
  const VulkanPipeline* gather = &backend.pipeline("sample/gather", "main");
  const VulkanPipeline* draw = &backend.pipeline("sample/draw", "main");
  Push push{};
  push.rows = narrow(request, request.inputs[0].shape[0]);
  push.columns = narrow(request, request.inputs[0].shape[1]);
  push.chunks = static_cast<uint32_t>(groups_of(push.columns, kChunk));
  // Sums of weights are made in parts that would overflow.
  if (push.columns > 1u << 21)
    throw UnsupportedError("sample: the Vulkan kernel takes at most 2^21 tokens, not {}", push.columns);
  push.row_bytes = groups_of(kRowBytes + push.chunks * kChunkBytes + 8 * uint64_t{push.columns}, 16) * 16;
  auto kernel = std::make_unique<RecordedKernel>("sample");
  kernel->scratch = static_cast<int64_t>(push.rows * push.row_bytes);
  kernel->dependent = 5;
  kernel->body = [=](VulkanRecorder& recorder, std::span<const Address> at) mutable {
    push.scores = at[0];
    push.settings = at[1];
    push.keys = at[2];
    push.steps = at[3];
    push.ids = at[4];
    push.facts = at[5];
    push.scratch = at[6];
    const uint64_t chunks = uint64_t{push.rows} * push.chunks;
    dispatch(recorder, *survey, push, chunks);
    recorder.barrier();
    dispatch(recorder, *plan, push, push.rows);
    recorder.barrier();
    dispatch(recorder, *count, push, chunks);
    recorder.barrier();
    dispatch(recorder, *gather, push, chunks);
    recorder.barrier();
    dispatch(recorder, *draw, push, push.rows);
  };
  return kernel;
}

}  // namespace hierarchos::ops
