#include "ops/index/assign/assign.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

OpInput input(DType dtype, Shape shape) {
  return dtype == DType::I32 ? OpInput::integers(shape, -99, 99) : OpInput::normal(dtype, shape);
}

OpCase make(Shape shape, DType to, DType from) {
  OpCase c;
  c.name = fmt::format("{} {} from {}", shape.to_string(), name_of(to), name_of(from));
  c.inputs = {input(to, shape), input(from, shape)};
  c.states = {0};
  c.build = [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{assign(in[0], in[1])}; };
  c.tolerance = 0;
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(assign) {
  const DType floats[] = {DType::F32, DType::BF16, DType::F16};
  for (DType to : floats)
    for (DType from : floats) cases.push_back(make(Shape{5, 67}, to, from));
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{40000}}) {
    cases.push_back(make(shape, DType::F32, DType::F32));
    cases.push_back(make(shape, DType::I32, DType::I32));
    cases.push_back(make(shape, DType::BF16, DType::F32));
  }
  for (DType to : floats) {
    OpCase c = make(Shape{30, 700}, to, DType::F32);
    c.name = fmt::format("a transpose to {}", name_of(to));
    c.inputs[1] = OpInput::normal(DType::F32, Shape{700, 30});
    c.build = [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{assign(in[0], transpose(in[1]))}; };
    cases.push_back(std::move(c));
    OpCase e = make(Shape{4, 5, 6}, to, DType::F32);
    e.name = fmt::format("an expanded value to {}", name_of(to));
    e.inputs[1] = OpInput::normal(DType::F32, Shape{5, 1});
    e.build = [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{assign(in[0], expand(in[1], Shape{4, 5, 6}))}; };
    cases.push_back(std::move(e));
  }
  const auto refused = [&](const std::string& name, OpInput value, const std::string& error) {
    OpCase c = make(Shape{3, 8}, DType::F32, DType::F32);
    c.name = "refuses " + name;
    c.states.clear();
    c.inputs[1] = std::move(value);
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("another shape", OpInput::normal(DType::F32, Shape{8, 3}), "cannot take over");
  refused("integers", OpInput::integers(Shape{3, 8}, 0, 5), "cannot take over");
}

}  // namespace hierarchos::ops
