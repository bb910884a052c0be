#include "ops/index/scatter_rows/scatter_rows.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

OpCase make(Shape buffer, std::vector<double> slots, DType to, DType from) {
  OpCase c;
  c.name = fmt::format("{} {} rows {} {}", buffer.to_string(), name_of(to), slots.size(), name_of(from));
  Shape rows = buffer;
  rows[0] = static_cast<int64_t>(slots.size());
  c.inputs = {to == DType::I32 ? OpInput::integers(buffer, -9, 9) : OpInput::normal(to, buffer),
              from == DType::I32 ? OpInput::integers(rows, -9, 9) : OpInput::normal(from, rows),
              OpInput::given(DType::I32, Shape{rows[0]}, slots)};
  c.states = {0};
  c.build = [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{scatter_rows(in[0], in[1], in[2])}; };
  c.tolerance = 0;
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(scatter_rows) {
  const DType floats[] = {DType::F32, DType::BF16, DType::F16};
  for (DType to : floats)
    for (DType from : floats) cases.push_back(make(Shape{9, 67}, {3, -1, 8, 9, 0, 100}, to, from));
  cases.push_back(make(Shape{9, 3}, {2, 1}, DType::I32, DType::I32));
  cases.push_back(make(Shape{9, 2, 3, 4}, {7, 0, 4}, DType::F32, DType::F32));
  cases.push_back(make(Shape{9, 4}, {}, DType::F32, DType::F32));
  cases.push_back(make(Shape{5}, {4, 2}, DType::F32, DType::F32));
  cases.push_back(make(Shape{200, 576}, {150, 3, 199, 0, 77}, DType::F16, DType::F32));
  {
    OpCase c = make(Shape{9, 8}, {3, 0, 5}, DType::F32, DType::F32);
    c.name = "strided rows";
    c.inputs[1] = OpInput::normal(DType::F32, Shape{3, 24});
    c.build = [](Graph&, const std::vector<Value>& in) {
      return std::vector<Value>{scatter_rows(in[0], slice(in[1], 1, 8, 16), in[2])};
    };
    cases.push_back(std::move(c));
  }
  {
    OpCase c = make(Shape{9, 8}, {3, 0, 5}, DType::BF16, DType::F32);
    c.name = "rows of a transpose";
    c.inputs[1] = OpInput::normal(DType::F32, Shape{8, 3});
    c.build = [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{scatter_rows(in[0], transpose(in[1]), in[2])}; };
    cases.push_back(std::move(c));
  }
  const auto refused = [&](const std::string& name, size_t input, OpInput instead, const std::string& error) {
    OpCase c = make(Shape{9, 8}, {3, 0, 5}, DType::F32, DType::F32);
    c.name = "refuses " + name;
    c.states.clear();
    c.inputs[input] = std::move(instead);
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("rows of another length", 1, OpInput::normal(DType::F32, Shape{3, 9}), "rows must be [3, 8]");
  refused("integers into floats", 1, OpInput::integers(Shape{3, 8}, 0, 5), "both be floating");
  refused("fewer slots than rows", 2, OpInput::integers(Shape{2}, 0, 5), "slots must be i32[3]");
}

}  // namespace hierarchos::ops
