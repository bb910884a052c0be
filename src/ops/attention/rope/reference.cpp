#include "ops/attention/rope/rope.h"
#include "ops/operator.h"

namespace hierarchos::ops {

void rope_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const RefTensor &x = *inputs[0], &cos = *inputs[1], &sin = *inputs[2];
  const int64_t tokens = x.type.shape[0], heads = x.type.shape[1], channels = x.type.shape[2], half = cos.type.shape[1];
  const bool interleaved = attrs.i_or("interleaved", 0) != 0;
  const double direction = attrs.i_or("inverse", 0) ? -1 : 1;
  outputs[0].data = x.data;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t row = inputs.size() == 4 ? static_cast<int64_t>(inputs[3]->data[static_cast<size_t>(t)]) : t;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t p = 0; p < half; ++p) {
        const int64_t head = (t * heads + h) * channels;
        const auto a = static_cast<size_t>(head + (interleaved ? 2 * p : p));
        const auto b = static_cast<size_t>(head + (interleaved ? 2 * p + 1 : p + half));
        const double c = cos.data[static_cast<size_t>(row * half + p)];
        const double s = direction * sin.data[static_cast<size_t>(row * half + p)];
        outputs[0].data[a] = x.data[a] * c - x.data[b] * s;
        outputs[0].data[b] = x.data[b] * c + x.data[a] * s;
      }
  }
}

}  // namespace hierarchos::ops
