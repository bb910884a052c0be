#include <cmath>
#include <limits>

#include "ops/operator.h"

namespace hierarchos::ops {

void reduce_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const std::string& kind = attrs.s("kind");
  const Shape& shape = inputs[0]->type.shape;
  int64_t outer = 1, middle = 1, inner = 1;
  for (int a = 0; a < shape.rank(); ++a) (a < attrs.i("begin") ? outer : a < attrs.i("end") ? middle : inner) *= shape[a];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      double value = kind == "max" ? -std::numeric_limits<double>::infinity() : 0;
      for (int64_t m = 0; m < middle; ++m) {
        const double x = inputs[0]->data[static_cast<size_t>((o * middle + m) * inner + i)];
        if (kind == "max")
          value = std::isnan(x) || x > value ? x : value;
        else
          value += x;
        if (std::isnan(value)) break;
      }
      outputs[0].data[static_cast<size_t>(o * inner + i)] = kind == "mean" ? value / static_cast<double>(middle) : value;
    }
}

}  // namespace hierarchos::ops
