// Decodes GGUF blocks with vector code: the values that quant/blocks.h gives, for the formats that weights mostly have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hierarchos::gemm {

// `count` whole blocks. Formats without vector code go through dequantize().
void decode_blocks(Storage storage, const std::byte* blocks, int64_t count, float* out);

}  // namespace hierarchos::gemm
