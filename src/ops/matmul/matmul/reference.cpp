#include <cmath>

#include "ops/matmul/matmul/matmul.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

double activate(const std::string& act, double x) {
  if (act == "none") return x;
  if (act == "silu") return x / (1 + std::exp(-x));
  if (act == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (act == "gelu_tanh") return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (act == "relu") return x > 0 || std::isnan(x) ? x : 0;
  if (act == "relu2") return x > 0 || std::isnan(x) ? x * x : 0;
  if (act == "tanh") return std::tanh(x);
  if (act == "sigmoid") return 1 / (1 + std::exp(-x));
  throw UnsupportedError("matmul: there is no activation \"{}\"", act);
}

}  // namespace

void matmul_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const MatmulOperands at = matmul_operands(attrs);
  const auto operand = [&](int i) -> const RefTensor& { return *inputs[static_cast<size_t>(i)]; };
  const Shape& shape = outputs[0].type.shape;
  const int64_t m = shape[-2], n = shape[-1], rows = shape.rows();
  const double softcap = attrs.f_or("softcap", 0), offset = attrs.f_or("norm_offset", 0);
  const bool gate = attrs.s("combine") == "gate";
  const std::string& act = attrs.s("act");

  // Row `row` counts over batch axes and M.
  const auto product = [&](int xi, int wi, int64_t row, int64_t column, bool prologue) {
    const RefTensor &x = operand(xi), &w = operand(wi);
    const int64_t k = x.type.shape.back();
    const int64_t w_row = w.type.shape.rank() == 2 ? column : row / m * n + column;
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      double value = x.data[static_cast<size_t>(row * k + i)];
      if (prologue && at.norm_weight >= 0) value *= operand(at.norm_weight).data[static_cast<size_t>(i)] + offset;
      sum += value * w.data[static_cast<size_t>(w_row * k + i)];
    }
    if (prologue && at.row_scale >= 0) {
      const RefTensor& scale = operand(at.row_scale);
      sum *= scale.data[static_cast<size_t>(scale.type.shape.elements() == m ? row % m : row)];
    }
    return sum;
  };

  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < n; ++column) {
      const double p1 = attrs.f_or("alpha", 1) * product(at.x1, at.w1, row, column, true);
      const double p2 = at.x2 < 0 ? 0 : attrs.f_or("alpha2", 1) * product(at.x2, at.w2, row, column, false);
      const double b1 = at.bias < 0 ? 0 : operand(at.bias).data[static_cast<size_t>(column)];
      const double b2 = at.bias2 < 0 ? 0 : operand(at.bias2).data[static_cast<size_t>(column)];
      double y;
      if (gate) {
        y = activate(act, p1 + b1) * (p2 + b2);
      } else {
        y = activate(act, p1 + p2 + b1);
        if (softcap != 0) y = softcap * std::tanh(y / softcap);
      }
      const auto place = static_cast<size_t>(row * n + column);
      if (at.residual >= 0) y += operand(at.residual).data[place];
      outputs[0].data[place] = y;
    }
}

}  // namespace hierarchos::ops
