#include <limits>

#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

OpCase make(const std::string& kind, OpInput input, int begin, int end) {
  OpCase c;
  c.name = fmt::format("{} {} {} axes {}-{}", kind, input.type.shape.to_string(), name_of(input.type.dtype), begin, end);
  c.inputs = {std::move(input)};
  c.build = [=](Graph&, const std::vector<Value>& in) {
    return std::vector<Value>{kind == "sum" ? sum(in[0], begin, end) : kind == "mean" ? mean(in[0], begin, end) : max(in[0], begin, end)};
  };
  c.tolerance = kind == "max" ? 0 : 2e-7;
  c.grad = kind != "max" && c.inputs[0].type.shape.elements() < 20000;
  return c;
}

}  // namespace

OP_CASES(reduce) {
  struct Axes {
    Shape shape;
    int begin, end;
  };
  const Axes axes[] = {
      {Shape{1}, 0, 1},         {Shape{7}, 0, 1},          {Shape{3, 65}, 1, 2},     {Shape{65, 3}, 0, 1},      {Shape{4, 5, 6}, 1, 2},
      {Shape{4, 5, 6}, 0, 2},   {Shape{4, 5, 6}, 1, 3},    {Shape{4, 5, 6}, 0, 3},   {Shape{0, 4}, 0, 1},       {Shape{4, 0}, 0, 1},
      {Shape{4, 5}, 1, 1},      {Shape{2, 300, 3}, 1, 2},  {Shape{200000}, 0, 1},    {Shape{1500, 129}, 0, 1},  {Shape{3, 70000}, 1, 2},
      {Shape{1, 900, 700}, 1, 2}, {Shape{2, 3, 2, 3, 2, 3}, 2, 4},
  };
  for (const Axes& a : axes)
    for (const char* kind : {"sum", "mean", "max"})
      for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
        if (dtype != DType::F32 && a.shape.elements() > 50000 && a.shape.rank() == 1) continue;
        cases.push_back(make(kind, OpInput::normal(dtype, a.shape, 1, 0.5), a.begin, a.end));
      }
  {
    // Would lose everything in one fp32 sum: the small ones come after a large one.
    std::vector<double> values(40000, 1.0);
    values[0] = 1 << 25;
    auto c = make("sum", OpInput::given(DType::F32, Shape{40000}, values), 0, 1);
    c.name = "sum of a large and many small";
    c.tolerance = 1e-6;
    cases.push_back(std::move(c));
  }
  {
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    for (int begin : {0, 1}) {
      auto c = make("max", OpInput::given(DType::F32, Shape{3, 3}, {1, nan, 2, -inf, -inf, -inf, inf, 3, -1}), begin, begin + 1);
      c.name = fmt::format("max with NaN, axis {}", begin);
      cases.push_back(std::move(c));
    }
  }
  {
    auto c = make("sum", OpInput::normal(DType::BF16, Shape{40, 9}), 0, 1);
    c.name = "sum of bf16 to f32";
    c.build = [](Graph& g, const std::vector<Value>& in) {
      return std::vector<Value>{g.emit1(reduce_def(), {in[0]}, {{"kind", std::string("sum")}, {"begin", int64_t{0}}, {"end", int64_t{1}}, {"out_f32", int64_t{1}}})};
    };
    cases.push_back(std::move(c));
  }
  for (const Shape& to : {Shape{1, 5, 1}, Shape{5, 1}, Shape{}, Shape{4, 1, 6}, Shape{1, 1, 1}, Shape{6}, Shape{4, 5, 6}}) {
    OpCase c;
    c.name = "sum_to " + to.to_string();
    c.inputs = {OpInput::normal(DType::F32, Shape{4, 5, 6})};
    c.build = [to](Graph&, const std::vector<Value>& in) { return std::vector<Value>{sum_to(in[0], to)}; };
    cases.push_back(std::move(c));
  }
  const auto refused = [&](const std::string& name, OpInput input, int begin, int end, const std::string& error) {
    auto c = make("sum", std::move(input), begin, end);
    c.name = "refuses " + name;
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("axes beyond the last", OpInput::normal(DType::F32, Shape{2, 3}), 1, 3, "axes [1, 3)");
  refused("integers", OpInput::integers(Shape{4}, 0, 3), 0, 1, "must be f32, f16 or bf16");
  for (const auto& [shape, begin] : {std::pair{Shape{2048, 576}, 0}, std::pair{Shape{2048, 576}, 1}}) {
    auto c = make("sum", OpInput::normal(DType::F32, shape), begin, begin + 1);
    c.name = "perf " + c.name;
    c.perf = true;
    cases.push_back(std::move(c));
  }
}

}  // namespace hierarchos::ops
