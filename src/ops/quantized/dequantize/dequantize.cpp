#include "ops/quantized/dequantize/dequantize.h"

#include "ops/common.h"
#include "ops/cpu/kernel.h"
#include "ops/operator.h"
#include "quant/blocks.h"

namespace hierarchos::ops {
namespace {

std::vector<Type> infer(const InferContext& c) {
  expect_inputs(c, 1, 1, "a block-quantised value");
  if (c.inputs[0].storage == Storage::Plain || c.inputs[0].layout != kRowMajor) c.fail("{} has no blocks", c.inputs[0].to_string());
  return {Type(DType::F32, c.inputs[0].shape)};
}

}  // namespace

Value dequantize(Value x) { return x.graph().emit1(dequantize_def(), {x}); }

const OpDef& dequantize_def() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "dequantize";
    d.infer = infer;
    return d;
  }();
  return def;
}

// The reference's tensors are decoded already.
void dequantize_reference(const Attrs&, std::span<const RefTensor* const> in, std::span<RefTensor> out) { out[0].data = in[0]->data; }

std::unique_ptr<Kernel> dequantize_cpu(CpuBackend&, const KernelRequest& request) {
  const Storage storage = request.inputs[0].storage;
  const int64_t rows = request.inputs[0].shape.rows(), width = request.inputs[0].shape.back();
  const int64_t row_bytes = width / block_elements(storage) * block_bytes(storage);
  return cpu::make_kernel("dequantize", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    pool.parallel_for(rows, [&](int64_t r, int) {
      hierarchos::dequantize(storage, {at[0] + r * row_bytes, static_cast<size_t>(row_bytes)},
                             {reinterpret_cast<float*>(at[1]) + r * width, static_cast<size_t>(width)});
    });
  });
}

}  // namespace hierarchos::ops
