// Attention with linear biases (Press et al. 2021).
#pragma once

#include <cstdint>
#include <vector>

namespace hierarchos::nn {

// A slope a head: a geometric sequence, as the reference's build_alibi_tensor (models/bloom, models/falcon) makes it
// where the number of heads is no power of two.
std::vector<double> alibi_slopes(int64_t heads);

}  // namespace hierarchos::nn
