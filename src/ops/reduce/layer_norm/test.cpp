#include "ops/reduce/layer_norm/layer_norm.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

struct Options {
  Shape shape;
  DType dtype = DType::F32;
  bool weight = true, bias = true;
  double eps = 1e-5, scale = 1, shift = 0;
};

OpCase make(const Options& o) {
  OpCase c;
  c.name = fmt::format("{} {}{}{} eps {} scale {} shift {}", o.shape.to_string(), name_of(o.dtype), o.weight ? " weight" : "",
                       o.bias ? " bias" : "", o.eps, o.scale, o.shift);
  c.inputs = {OpInput::normal(o.dtype, o.shape, o.scale, o.shift)};
  if (o.weight) c.inputs.push_back(OpInput::normal(DType::F32, Shape{o.shape.back()}, 0.5, 1));
  if (o.bias) c.inputs.push_back(OpInput::normal(DType::F32, Shape{o.shape.back()}));
  c.build = [o](Graph&, const std::vector<Value>& in) {
    const auto weight = o.weight ? std::optional(in[1]) : std::nullopt, bias = o.bias ? std::optional(in.back()) : std::nullopt;
    return std::vector<Value>{layer_norm(in[0], weight, bias, o.eps)};
  };
  c.tolerance = 5e-7;
  c.grad = o.shape.elements() <= 3000;
  return c;
}

}  // namespace

OP_CASES(layer_norm) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 65}, Shape{0, 8}, Shape{7}, Shape{2, 3, 17}, Shape{5, 768}, Shape{33, 1030}, Shape{2, 9000}})
    for (DType dtype : {DType::F32, DType::BF16, DType::F16}) cases.push_back(make({shape, dtype}));
  for (bool weight : {true, false})
    for (bool bias : {true, false})
      if (!weight || !bias) cases.push_back(make({.shape = Shape{6, 40}, .weight = weight, .bias = bias}));
  // A large mean beside a small deviation: naive variance would be lost.
  auto shifted = make({.shape = Shape{4, 200}, .scale = 1, .shift = 1000});
  shifted.tolerance = 2e-5;  // the mean itself is only known to fp32's precision
  cases.push_back(std::move(shifted));
  cases.push_back(make({.shape = Shape{4, 24}, .eps = 0.1, .scale = 1e-3}));
  {
    OpCase c = make({.shape = Shape{5, 31}});
    c.name = "all results";
    c.build = [](Graph& g, const std::vector<Value>& in) {
      return g.emit(layer_norm_def(), in, {{"eps", 1e-5}, {"weight", int64_t{1}}, {"bias", int64_t{1}}});
    };
    c.grad_results = {0};
    cases.push_back(std::move(c));
  }
  const auto refused = [&](const std::string& name, std::vector<OpInput> inputs, const std::string& error) {
    OpCase c = make({.shape = Shape{3, 8}});
    c.name = "refuses " + name;
    c.inputs = std::move(inputs);
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  const OpInput x = OpInput::normal(DType::F32, Shape{3, 8});
  refused("a weight of another length", {x, OpInput::normal(DType::F32, Shape{7}), OpInput::normal(DType::F32, Shape{8})}, "weight must be [8]");
  refused("a bias of another length", {x, OpInput::normal(DType::F32, Shape{8}), OpInput::normal(DType::F32, Shape{9})}, "bias must be [8]");
  refused("integers", {OpInput::integers(Shape{3, 8}, 0, 5), OpInput::normal(DType::F32, Shape{8}), OpInput::normal(DType::F32, Shape{8})}, "x must be");
  OpCase c = make({.shape = Shape{2048, 768}});
  c.name = "perf [2048, 768] f32";
  c.perf = true;
  cases.push_back(std::move(c));
}

OP_CASES(layer_norm_backward) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 65}, Shape{0, 8}, Shape{7}, Shape{2, 3, 17}, Shape{33, 1030}})
      for (bool weight : {true, false}) {
        OpCase c;
        c.name = fmt::format("{} {} {}", shape.to_string(), name_of(dtype), weight ? "weight" : "plain");
        const Shape rows(shape.dims().first(static_cast<size_t>(shape.rank() - 1)));
        c.inputs = {OpInput::normal(dtype, shape), OpInput::normal(dtype, shape), OpInput::normal(DType::F32, rows, 0.1),
                    OpInput::uniform(DType::F32, rows, 0.5, 2)};
        if (weight) c.inputs.push_back(OpInput::normal(DType::F32, Shape{shape.back()}));
        c.build = [](Graph& g, const std::vector<Value>& in) { return std::vector<Value>{g.emit1(layer_norm_backward_def(), in)}; };
        c.tolerance = shape.back() == 1 ? 1e-5 : 5e-7;  // one element: its terms cancel
        c.grad = false;
        cases.push_back(std::move(c));
      }
}

}  // namespace hierarchos::ops
