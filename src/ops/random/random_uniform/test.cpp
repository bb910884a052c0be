#include "ops/random/random_uniform/random_uniform.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(std::vector<double> tokens, int64_t columns, double step, const std::string& stream, uint64_t seed) {
  OpCase c;
  c.name = fmt::format("{} tokens, {} columns, step {}, {} {}", tokens.size(), columns, step, stream, seed);
  const auto count = static_cast<int64_t>(tokens.size());
  c.inputs = {OpInput::given(DType::I32, Shape{}, {step}), OpInput::given(DType::I32, Shape{count}, std::move(tokens))};
  c.build = [=](Graph&, const std::vector<Value>& in) {
    return std::vector<Value>{random_uniform(in[0], in[1], columns, stream, seed)};
  };
  c.tolerance = 0;
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(random_uniform) {
  cases.push_back(make({0}, 1, 0, "dropout", 0));
  cases.push_back(make({5, 4, 1000000, 2147483647}, 7, 12345, "layers.3.dropout", 42));
  cases.push_back(make({}, 7, 1, "dropout", 0));
  cases.push_back(make({1, 2}, 0, 1, "dropout", 0));
  std::vector<double> many;
  for (int t = 0; t < 300; ++t) many.push_back(t);
  cases.push_back(make(many, 129, 3, "noise", 0xFFFFFFFFFFFFFFFFu));
  OpCase c = make({1, 2}, 3, 1, "x", 0);
  c.name = "refuses a matrix of tokens";
  c.inputs[1] = OpInput::integers(Shape{2, 2}, 0, 9);
  c.expect_error = "tokens must be i32 [T]";
  cases.push_back(std::move(c));
  c = make({1, 2}, 3, 1, "x", 0);
  c.name = "refuses a floating step";
  c.inputs[0] = OpInput::normal(DType::F32, Shape{});
  c.expect_error = "step must be i32";
  cases.push_back(std::move(c));
  c = make(many, 4096, 3, "noise", 1);
  c.name = "perf 300 tokens, 4096 columns";
  c.perf = true;
  cases.push_back(std::move(c));
}

}  // namespace hierarchos::ops
