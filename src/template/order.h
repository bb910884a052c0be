// Sorting that stays in its bounds whatever the order says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace hierarchos::jinja {

// The places 0 … count - 1 in the order of `before(a, b)`, equal ones as they come. The standard library's sorts may
// leave their range when an order contradicts itself, as that of NaN does.
template <typename Before>
std::vector<size_t> merge_order(size_t count, Before before) {
  std::vector<size_t> order(count), other(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = std::min(begin + width, count), end = std::min(begin + 2 * width, count);
      size_t a = begin, b = middle;
      for (size_t out = begin; out < end; ++out) {
        const bool from_b = b < end && (a == middle || before(order[b], order[a]));
        other[out] = from_b ? order[b++] : order[a++];
      }
    }
    std::swap(order, other);
  }
  return order;
}

}  // namespace hierarchos::jinja
