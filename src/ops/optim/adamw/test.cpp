#include <cmath>

#include "ops/optim/adamw/adamw.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(Shape shape, int step, double enabled = 1, double grad_scale = 0.5, double weight_decay = 0.1) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.95;
  OpCase c;
  c.name = fmt::format("{} step {} enabled {} grad scale {} decay {}", shape.to_string(), step, enabled, grad_scale, weight_decay);
  const auto count = static_cast<size_t>(shape.elements());
  std::vector<double> squares(count);
  for (size_t i = 0; i < count; ++i) squares[i] = 1e-4 * static_cast<double>(i % 17);  // some are 0
  c.inputs = {OpInput::normal(DType::F32, shape),
              OpInput::normal(DType::F32, shape, 0.1),
              OpInput::normal(DType::F32, shape, 0.02),
              OpInput::given(DType::F32, shape, squares),
              OpInput::given(DType::F32, Shape{4}, {1e-2, 1 - std::pow(kBeta1, step), std::sqrt(1 - std::pow(kBeta2, step)), grad_scale}),
              OpInput::given(DType::I32, Shape{}, {enabled})};
  c.states = {0, 2, 3};
  c.build = [=](Graph&, const std::vector<Value>& in) {
    const auto r = adamw(in[0], in[1], in[2], in[3], in[4], in[5], kBeta1, kBeta2, 1e-8, weight_decay);
    return std::vector<Value>{r.param, r.m, r.v};
  };
  c.tolerance = 2e-7;
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(adamw) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 4}, Shape{3, 65}, Shape{40000}, Shape{2, 3, 4, 5}})
    for (int step : {1, 1000}) cases.push_back(make(shape, step));
  cases.push_back(make(Shape{300}, 5, 0));
  cases.push_back(make(Shape{300}, 5, 7));
  cases.push_back(make(Shape{300}, 5, 1, 1, 0));
  const auto refused = [&](const std::string& name, size_t input, OpInput instead, const std::string& error) {
    OpCase c = make(Shape{3, 8}, 1);
    c.name = "refuses " + name;
    c.states.clear();
    c.inputs[input] = std::move(instead);
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("a gradient of another shape", 1, OpInput::normal(DType::F32, Shape{8, 3}), "grad must be f32[3, 8]");
  refused("a half-precision moment", 2, OpInput::normal(DType::BF16, Shape{3, 8}), "m must be f32[3, 8]");
  refused("short hyper-parameters", 4, OpInput::normal(DType::F32, Shape{3}), "hyper must be f32[4]");
  OpCase perf = make(Shape{2048, 4096}, 3);
  perf.name = "perf [2048, 4096]";
  perf.perf = true;
  cases.push_back(std::move(perf));
}

}  // namespace hierarchos::ops
