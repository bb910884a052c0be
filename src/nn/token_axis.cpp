#include "nn/token_axis.h"

#include <algorithm>
#include <numeric>

#include "tensor/host_tensor.h"

namespace hierarchos::nn {

std::vector<int32_t> attention_ranges(const MaskSpec& mask, std::span<const int32_t> positions,
                                      std::span<const int32_t> segments) {
  const size_t tokens = positions.size();
  std::vector<int32_t> ranges(2 * tokens, 0);
  size_t begin = 0;
  while (begin < tokens) {
    size_t end = begin + 1;
    while (end < tokens && segments[end] == segments[begin]) ++end;
    for (size_t t = begin; t < end && segments[begin] >= 0; ++t) {
      // Distances are in positions; the key at position p is row first + p, where `first` is row of position 0.
      const int64_t position = positions[t];
      const int64_t first = mask.cached ? 0 : static_cast<int64_t>(t) - position;
      const int64_t least = mask.cached ? 0 : static_cast<int64_t>(begin);
      int64_t low = least;
      int64_t high = first + position + 1;
      if (!mask.causal) {
        high = mask.cached ? high : static_cast<int64_t>(end);
        if (mask.window > 0) high = std::min(high, first + position + mask.window);
      }
      if (mask.window > 0) low = std::max(low, first + position + 1 - mask.window);
      if (mask.chunk > 0) {
        const int64_t chunk_begin = position / mask.chunk * mask.chunk;
        low = std::max(low, first + chunk_begin);
        high = std::min(high, first + chunk_begin + mask.chunk);
      }
      ranges[2 * t] = static_cast<int32_t>(low);
      ranges[2 * t + 1] = static_cast<int32_t>(std::max(low, high));
    }
    begin = end;
  }
  return ranges;
}

Value attention_ranges(Graph& graph, const MaskSpec& mask, int64_t tokens) {
  const std::string name = fmt::format("attention_ranges.{}{}.window={}.chunk={}", mask.causal ? "causal" : "full",
                                       mask.cached ? ".cached" : "", mask.window, mask.chunk);
  return graph.derived(
      name, Type(DType::I32, {tokens, 2}), {"positions", "segments"}, [mask](std::span<const HostTensor> inputs) {
        const auto ranges = attention_ranges(mask, inputs[0].data<int32_t>(), inputs[1].data<int32_t>());
        return HostTensor::from<int32_t>(DType::I32, {inputs[0].shape()[0], 2}, ranges);
      });
}

Value sorted_order(Graph& graph, const std::string& ids, int64_t tokens) {
  return graph.derived(ids + ".order", Type(DType::I32, {tokens}), {ids}, [](std::span<const HostTensor> inputs) {
    const auto values = inputs[0].data<int32_t>();
    std::vector<int32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return values[static_cast<size_t>(a)] < values[static_cast<size_t>(b)];
    });
    return HostTensor::from<int32_t>(DType::I32, {inputs[0].shape()[0]}, order);
  });
}

}  // namespace hierarchos::nn
