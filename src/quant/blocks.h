// Codecs of GGUF's block formats (ggml-quants.c defines them). A block is 32 or 256 neighbouring elements of a row.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/host_tensor.h"

namespace hierarchos {

// Decodes whole blocks; `out` has block_elements(storage) values a block. Throws UserError when the sizes do not fit.
void dequantize(Storage storage, std::span<const std::byte> blocks, std::span<float> out);
// Encodes whole blocks as ggml's reference does. Q4_0, Q4_1 and Q8_0; others throw UnsupportedError. UserError for
// values that are not finite or whose block's scale exceeds half precision.
void quantize(Storage storage, std::span<const float> values, std::span<std::byte> blocks);

// The plain fp32 tensor of a block-quantised one; a plain tensor is returned as it is.
HostTensor dequantized(const HostTensor& tensor);

}  // namespace hierarchos
