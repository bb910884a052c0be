#include "nn/alibi.h"

#include <bit>
#include <cmath>

namespace hierarchos::nn {

std::vector<double> alibi_slopes(int64_t heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  for (int64_t i = 1; i <= power; ++i)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(power)));
  // The rest: every second slope of twice as many heads.
  for (int64_t i = 1; static_cast<int64_t>(slopes.size()) < heads; i += 2)
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(2 * power)));
  return slopes;
}

}  // namespace hierarchos::nn
