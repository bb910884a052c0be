#include "base/rng.h"
#include "ops/cpu/kernel.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> random_uniform_cpu(CpuBackend&, const KernelRequest& request) {
  const auto key = static_cast<uint64_t>(request.attrs.i("stream"));
  const int64_t rows = request.outputs[0].shape[0], columns = request.outputs[0].shape[1];
  return cpu::make_kernel("random_uniform", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto step = static_cast<uint32_t>(*reinterpret_cast<const int32_t*>(at[0]));
    const auto* tokens = reinterpret_cast<const int32_t*>(at[1]);
    auto* out = reinterpret_cast<float*>(at[2]);
    // Each number costs some ten operations: smaller tasks than for a copy.
    cpu::parallel_rows(pool, rows, columns * 4, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t)
        for (int64_t e = 0; e < columns; e += 4) {
          const auto words = philox(key, step, static_cast<uint32_t>(tokens[t]), static_cast<uint32_t>(e / 4));
          for (int64_t k = 0; k < std::min<int64_t>(4, columns - e); ++k)
            out[t * columns + e + k] = uniform_from_bits(words[static_cast<size_t>(k)]);
        }
    });
  });
}

}  // namespace hierarchos::ops
