#include <algorithm>
#include <cstring>

#include "ops/cpu/kernel.h"
#include "ops/operator.h"

namespace hierarchos::ops {

std::unique_ptr<Kernel> gather_cpu(CpuBackend&, const KernelRequest& request) {
  const TensorDesc& table = request.inputs[0];
  if (table.storage != Storage::Plain)
    throw UnsupportedError("gather has no kernel for {} tables on the CPU", name_of(table.storage));
  const int64_t rows = request.inputs[1].shape[0], count = table.shape[0];
  int64_t n = 1;
  for (int a = 1; a < table.shape.rank(); ++a) n *= table.shape[a];
  const int64_t bytes = n * static_cast<int64_t>(size_of(table.dtype));
  const size_t result = request.inputs.size();
  return cpu::make_kernel("gather", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto* ids = reinterpret_cast<const int32_t*>(at[1]);
    std::byte* out = at[result];
    cpu::parallel_rows(pool, rows, n, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        std::byte* to = out + t * bytes;
        if (ids[t] < 0 || ids[t] >= count)
          std::fill_n(to, bytes, std::byte{0});
        else
          std::memcpy(to, at[0] + ids[t] * bytes, static_cast<size_t>(bytes));
      }
    });
  });
}

}  // namespace hierarchos::ops
