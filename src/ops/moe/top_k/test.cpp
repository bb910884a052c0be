#include <cmath>
#include <limits>

#include "ops/moe/top_k/top_k.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(OpInput x, int64_t k, const std::string& what) {
  OpCase c;
  c.name = fmt::format("{} {} k={} {}", x.type.shape.to_string(), name_of(x.type.dtype), k, what);
  c.inputs = {std::move(x)};
  c.build = [k](Graph&, const std::vector<Value>& in) {
    const TopK top = top_k(in[0], k);
    return std::vector<Value>{top.values, top.indices};
  };
  c.tolerance = 0;
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(top_k) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    cases.push_back(make(OpInput::normal(dtype, Shape{5, 8}), 2, "router"));
    cases.push_back(make(OpInput::normal(dtype, Shape{3, 257}), 9, "past a group"));
  }
  cases.push_back(make(OpInput::normal(DType::F32, Shape{300, 128}), 8, "many rows"));
  cases.push_back(make(OpInput::normal(DType::F32, Shape{2, 7}), 7, "all"));
  cases.push_back(make(OpInput::normal(DType::F32, Shape{1, 1}), 1, "one"));
  cases.push_back(make(OpInput::normal(DType::F32, Shape{0, 5}), 2, "no rows"));
  cases.push_back(make(OpInput::normal(DType::F32, Shape{1, 5000}), 3, "long"));
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  cases.push_back(
      make(OpInput::given(DType::F32, Shape{2, 6}, {1, 3, 3, 1, 3, 0, -inf, inf, -inf, 2, inf, -1}), 5, "ties"));
  // A NaN is as small as -inf, and the lower index comes first; so the chosen four hold none.
  cases.push_back(make(OpInput::given(DType::F32, Shape{1, 6}, {nan, 2, nan, -1, 0, 5}), 4, "nan"));
  OpCase bad = make(OpInput::normal(DType::F32, Shape{2, 3}), 4, "refuses more than there are");
  bad.expect_error = "the 4 largest of 3";
  cases.push_back(bad);
}

}  // namespace hierarchos::ops
