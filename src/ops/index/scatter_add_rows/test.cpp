#include <algorithm>
#include <numeric>

#include "ops/index/scatter_add_rows/scatter_add_rows.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(Shape table, int64_t count, DType dtype, int64_t low, int64_t high, int64_t padding = -1) {
  OpCase c;
  c.name = fmt::format("{} rows {} {} ids from [{}, {}) padding {}", table.to_string(), count, name_of(dtype), low, high, padding);
  std::vector<double> ids, order(static_cast<size_t>(count));
  uint64_t state = 1234567;
  for (int64_t t = 0; t < count; ++t) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<double>(low + static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(high - low))));
  }
  std::iota(order.begin(), order.end(), 0.0);
  std::stable_sort(order.begin(), order.end(), [&](double a, double b) { return ids[static_cast<size_t>(a)] < ids[static_cast<size_t>(b)]; });
  Shape rows = table;
  rows[0] = count;
  c.inputs = {OpInput::normal(DType::F32, table), OpInput::normal(dtype, rows), OpInput::given(DType::I32, Shape{count}, ids),
              OpInput::given(DType::I32, Shape{count}, order)};
  c.states = {0};
  c.build = [padding](Graph&, const std::vector<Value>& in) {
    return std::vector<Value>{scatter_add_rows(in[0], in[1], in[2], in[3], padding)};
  };
  c.tolerance = 3e-7;
  c.grad = table.elements() < 3000;
  return c;
}

}  // namespace

OP_CASES(scatter_add_rows) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    cases.push_back(make(Shape{11, 6}, 9, dtype, 0, 11));
    cases.push_back(make(Shape{3, 65}, 200, dtype, 0, 3));  // long groups
    cases.push_back(make(Shape{300, 576}, 64, dtype, 0, 300));
  }
  cases.push_back(make(Shape{4, 700}, 3000, DType::F32, 0, 4));  // groups across tasks, rows across blocks
  cases.push_back(make(Shape{7, 33}, 20, DType::F32, -3, 10));
  cases.push_back(make(Shape{7, 33}, 20, DType::F32, 0, 7, 2));
  cases.push_back(make(Shape{7, 2, 3}, 5, DType::F32, 0, 7));
  cases.push_back(make(Shape{7}, 12, DType::F32, 0, 7));
  cases.push_back(make(Shape{7, 4}, 0, DType::F32, 0, 7));
  cases.push_back(make(Shape{1, 1}, 1, DType::F32, 0, 1));
  const auto refused = [&](const std::string& name, size_t input, OpInput instead, const std::string& error) {
    OpCase c = make(Shape{5, 4}, 3, DType::F32, 0, 5);
    c.name = "refuses " + name;
    c.states.clear();
    c.inputs[input] = std::move(instead);
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("a half-precision accumulator", 0, OpInput::normal(DType::BF16, Shape{5, 4}), "accumulator must be f32");
  refused("rows of another length", 1, OpInput::normal(DType::F32, Shape{3, 5}), "rows must be [3, 4]");
  refused("fewer ids than rows", 2, OpInput::integers(Shape{2}, 0, 5), "ids must be i32[3]");
  refused("floating order", 3, OpInput::normal(DType::F32, Shape{3}), "order must be i32[3]");
  OpCase perf = make(Shape{49152, 576}, 2048, DType::F32, 0, 49152);
  perf.name = "perf " + perf.name;
  perf.perf = true;
  cases.push_back(std::move(perf));
}

}  // namespace hierarchos::ops
