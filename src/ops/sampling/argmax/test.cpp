#include <limits>

#include "ops/sampling/argmax/argmax.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(const std::string& name, OpInput input) {
  OpCase c;
  c.name = name;
  c.inputs = {std::move(input)};
  c.build = [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{argmax(in[0])}; };
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(argmax) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const Shape& shape : {Shape{1, 1}, Shape{0, 3}, Shape{5, 7}, Shape{3, 65}, Shape{4, 1000}, Shape{2, 50257}})
      cases.push_back(make(fmt::format("{} {}", shape.to_string(), name_of(dtype)), OpInput::normal(dtype, shape)));
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  std::vector<double> ties(2 * 40, -1);
  for (size_t i : {5u, 17u, 39u, 40u + 39u}) ties[i] = 2;
  cases.push_back(make("ties go to the first", OpInput::given(DType::F32, Shape{2, 40}, ties)));
  cases.push_back(make("special values", OpInput::given(DType::F32, Shape{5, 3}, {nan, 1, 2, nan, nan, nan, -inf, -inf, -inf, inf, nan, inf, nan, -inf, nan})));
  std::vector<double> buried(200, nan);
  buried[131] = -3;
  cases.push_back(make("one number among NaN", OpInput::given(DType::F32, Shape{1, 200}, buried)));
  OpCase c = make("refuses a vector", OpInput::normal(DType::F32, Shape{5}));
  c.expect_error = "[T, V]";
  cases.push_back(std::move(c));
  c = make("refuses rows without elements", OpInput::normal(DType::F32, Shape{5, 0}));
  c.expect_error = "nothing to choose";
  cases.push_back(std::move(c));
  c = make("refuses integers", OpInput::integers(Shape{5, 3}, 0, 9));
  c.expect_error = "x must be";
  cases.push_back(std::move(c));
  c = make("perf [1, 128256] f32", OpInput::normal(DType::F32, Shape{1, 128256}));
  c.perf = true;
  cases.push_back(std::move(c));
}

}  // namespace hierarchos::ops
