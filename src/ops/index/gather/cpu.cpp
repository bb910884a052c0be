#include <algorithm>
#include <cstring>

#include "ops/cpu/kernel.h"
#include "ops/operator.h"
#include "quant/blocks.h"
#include "quant/layout.h"

namespace hierarchos::ops {
namespace {

// A row of a table in groups of 16, as the table's type.
void take_row16(Storage storage, const std::byte* table, int64_t n, int64_t row, std::byte* to) {
  if (storage == Storage::Plain)
    copy_row16(table, n, row, to);
  else
    decode_row16(storage, table, n, row, reinterpret_cast<float*>(to));
}

}  // namespace

std::unique_ptr<Kernel> gather_cpu(CpuBackend&, const KernelRequest& request) {
  const TensorDesc& table = request.inputs[0];
  const int64_t rows = request.inputs[1].shape[0], count = table.shape[0];
  int64_t n = 1;
  for (int a = 1; a < table.shape.rank(); ++a) n *= table.shape[a];
  const int64_t bytes = n * static_cast<int64_t>(size_of(table.dtype));
  const Storage storage = table.storage;
  const DType dtype = table.dtype;
  const bool grouped = table.layout == kRows16;
  if (table.layout != kRowMajor && (!grouped || table.shape.rank() != 2 || !has_rows16(dtype, storage)))
    throw UnsupportedError("gather on the CPU does not read this layout of tables ({})", table.layout);
  const int64_t row_bytes = storage == Storage::Plain ? bytes : n / block_elements(storage) * block_bytes(storage);
  const size_t result = request.inputs.size();
  return cpu::make_kernel("gather", [=](ThreadPool& pool, std::span<std::byte* const> at) {
    const auto* ids = reinterpret_cast<const int32_t*>(at[1]);
    std::byte* out = at[result];
    cpu::parallel_rows(pool, rows, n, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        std::byte* to = out + t * bytes;
        if (ids[t] < 0 || ids[t] >= count)
          std::fill_n(to, bytes, std::byte{0});
        else if (grouped)
          take_row16(storage, at[0], n, ids[t], to);
        else if (storage == Storage::Plain)
          std::memcpy(to, at[0] + ids[t] * bytes, static_cast<size_t>(bytes));
        else
          dequantize(storage, {at[0] + ids[t] * row_bytes, static_cast<size_t>(row_bytes)},
                     {reinterpret_cast<float*>(to), static_cast<size_t>(n)});
      }
    });
  });
}

}  // namespace hierarchos::ops
