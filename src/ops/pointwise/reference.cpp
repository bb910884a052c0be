#include <array>

#include "ops/operator.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos::ops {

void pointwise_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const PointwiseExpr expr = PointwiseExpr::parse(attrs.s("expr"), static_cast<int>(inputs.size()));
  const Shape& shape = outputs[0].type.shape;
  const int rank = shape.rank();
  std::vector<double> in(inputs.size()), out(outputs.size());
  std::array<int64_t, Shape::kMaxRank> index{};
  for (int64_t e = 0; e < shape.elements(); ++e) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& s = inputs[i]->type.shape;
      int64_t at = 0;
      for (int a = 0; a < s.rank(); ++a)
        at = at * s[a] + (s[a] == 1 ? 0 : index[static_cast<size_t>(a + rank - s.rank())]);
      in[i] = inputs[i]->data[static_cast<size_t>(at)];
    }
    evaluate(expr, in.data(), out.data());
    for (size_t o = 0; o < outputs.size(); ++o)
      outputs[o].data[static_cast<size_t>(e)] = outputs[o].type.dtype == DType::Bool ? static_cast<double>(out[o] != 0) : out[o];
    for (int a = rank - 1; a >= 0; --a) {
      if (++index[static_cast<size_t>(a)] < shape[a]) break;
      index[static_cast<size_t>(a)] = 0;
    }
  }
}

}  // namespace hierarchos::ops
