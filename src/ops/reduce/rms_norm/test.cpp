#include "ops/reduce/rms_norm/rms_norm.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

struct Options {
  Shape shape;
  DType dtype = DType::F32, weight_dtype = DType::F32;
  bool weight = true;
  double eps = 1e-5, offset = 0, scale = 1, shift = 0;
};

OpCase make(const Options& o) {
  OpCase c;
  c.name = fmt::format("{} {} weight {} eps {} offset {} scale {}", o.shape.to_string(), name_of(o.dtype),
                       o.weight ? name_of(o.weight_dtype) : "none", o.eps, o.offset, o.scale);
  c.inputs = {OpInput::normal(o.dtype, o.shape, o.scale, o.shift)};
  if (o.weight) c.inputs.push_back(OpInput::normal(o.weight_dtype, Shape{o.shape.back()}, 0.5, 1));
  c.build = [o](Graph&, const std::vector<Value>& in) {
    const auto r = rms_norm_with_stats(in[0], o.weight ? std::optional(in[1]) : std::nullopt, o.eps, o.offset);
    return std::vector<Value>{r.y, r.rstd};
  };
  c.tolerance = 3e-7;
  c.grad = o.shape.elements() <= 3000;
  return c;
}

}  // namespace

OP_CASES(rms_norm) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 65}, Shape{0, 8}, Shape{7}, Shape{2, 3, 17}, Shape{5, 576}, Shape{33, 1030}, Shape{2, 9000}})
    for (bool weight : {true, false})
      for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
        Options o{shape, dtype};
        o.weight = weight;
        cases.push_back(make(o));
      }
  cases.push_back(make({.shape = Shape{4, 24}, .offset = 1}));
  cases.push_back(make({.shape = Shape{4, 24}, .dtype = DType::BF16, .weight_dtype = DType::BF16, .offset = 1}));
  cases.push_back(make({.shape = Shape{4, 24}, .eps = 0.1, .scale = 1e-3}));
  cases.push_back(make({.shape = Shape{4, 24}, .eps = 1e-6, .scale = 1e4, .shift = 1e5}));
  const auto refused = [&](const std::string& name, std::vector<OpInput> inputs, const std::string& error) {
    OpCase c = make({.shape = Shape{3, 8}});
    c.name = "refuses " + name;
    c.inputs = std::move(inputs);
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("a weight of another length", {OpInput::normal(DType::F32, Shape{3, 8}), OpInput::normal(DType::F32, Shape{7})}, "weight must be [8]");
  refused("a scalar", {OpInput::normal(DType::F32, Shape{}), OpInput::normal(DType::F32, Shape{1})}, "no axis");
  refused("integers", {OpInput::integers(Shape{3, 8}, 0, 5), OpInput::normal(DType::F32, Shape{8})}, "x must be");
  for (DType dtype : {DType::F32, DType::BF16}) {
    OpCase c = make({.shape = Shape{2048, 576}, .dtype = dtype});
    c.name = "perf " + c.name;
    c.perf = true;
    cases.push_back(std::move(c));
  }
}

OP_CASES(rms_norm_backward) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 65}, Shape{0, 8}, Shape{7}, Shape{2, 3, 17}, Shape{33, 1030}})
      for (bool weight : {true, false}) {
        OpCase c;
        c.name = fmt::format("{} {} {}", shape.to_string(), name_of(dtype), weight ? "weight" : "plain");
        const Shape rows(shape.dims().first(static_cast<size_t>(shape.rank() - 1)));
        c.inputs = {OpInput::normal(dtype, shape), OpInput::normal(dtype, shape), OpInput::uniform(DType::F32, rows, 0.5, 2)};
        if (weight) c.inputs.push_back(OpInput::normal(DType::F32, Shape{shape.back()}));
        c.build = [](Graph& g, const std::vector<Value>& in) {
          return std::vector<Value>{g.emit1(rms_norm_backward_def(), in, {{"weight_offset", 0.25}})};
        };
        c.tolerance = 4e-7;
        c.grad = false;
        cases.push_back(std::move(c));
      }
  OpCase c;
  c.name = "perf [2048, 576] f32";
  c.inputs = {OpInput::normal(DType::F32, Shape{2048, 576}), OpInput::normal(DType::F32, Shape{2048, 576}),
              OpInput::uniform(DType::F32, Shape{2048}, 0.5, 2), OpInput::normal(DType::F32, Shape{576})};
  c.build = [](Graph& g, const std::vector<Value>& in) {
    return std::vector<Value>{g.emit1(rms_norm_backward_def(), in, {{"weight_offset", 0.0}})};
  };
  c.perf = true;
  cases.push_back(std::move(c));
}

}  // namespace hierarchos::ops
