#include "base/rng.h"
#include "ops/operator.h"

namespace hierarchos::ops {

void random_uniform_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const auto key = static_cast<uint64_t>(attrs.i("stream"));
  const auto step = static_cast<uint32_t>(static_cast<int64_t>(inputs[0]->data[0]));
  const int64_t columns = attrs.i("columns");
  for (size_t t = 0; t < inputs[1]->data.size(); ++t)
    for (int64_t e = 0; e < columns; ++e) {
      const auto token = static_cast<uint32_t>(static_cast<int64_t>(inputs[1]->data[t]));
      const auto words = philox(key, step, token, static_cast<uint32_t>(e / 4));
      outputs[0].data[t * static_cast<size_t>(columns) + static_cast<size_t>(e)] =
          static_cast<double>(uniform_from_bits(words[static_cast<size_t>(e % 4)]));
    }
}

}  // namespace hierarchos::ops
