#include "ops/sampling/count_tokens/count_tokens.h"

#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(const std::string& name, OpInput counts, std::vector<double> rows, std::vector<double> ids,
            std::vector<double> kinds) {
  OpCase c;
  c.name = name;
  const Shape shape{static_cast<int64_t>(rows.size())};
  c.inputs = {std::move(counts), OpInput::given(DType::I32, shape, std::move(rows)),
              OpInput::given(DType::I32, shape, std::move(ids)), OpInput::given(DType::I32, shape, std::move(kinds))};
  c.states = {0};
  c.build = [](Graph&, const std::vector<Value>& in) {
    return std::vector<Value>{count_tokens(in[0], in[1], in[2], in[3])};
  };
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(count_tokens) {
  const auto counts = [] { return OpInput::integers(Shape{3, 11}, 0, 9); };
  cases.push_back(make("a prompt, with repetitions", counts(), {1, 1, 1, 1}, {4, 4, 0, 4}, {5, 1, 1, 1}));
  cases.push_back(make("a token of each sequence", counts(), {2, 0, 1}, {10, 10, 3}, {2, 2, 2}));
  cases.push_back(make("the same token twice", counts(), {0, 0, 0, 2}, {5, 5, 5, 5}, {2, 2, 1, 2}));
  cases.push_back(make("a sequence begins again beside others", counts(), {0, 1, 2, 2}, {1, 2, 3, 4}, {2, 5, 2, 6}));
  cases.push_back(make("padding", counts(), {-1, 3, 0, 0, 1}, {1, 2, -1, 11, 6}, {1, 2, 2, 1, 0}));
  std::vector<double> rows, ids, kinds;
  for (int t = 0; t < 700; ++t) {
    rows.push_back(t % 5 - 1);
    ids.push_back(t * 7919 % 3001);
    kinds.push_back(t < 3 ? 5 : t % 3);
  }
  cases.push_back(make("many", OpInput::integers(Shape{4, 3000}, 0, 4), rows, ids, kinds));
  OpCase c = make("refuses lists of different lengths", counts(), {0, 1}, {1, 2}, {1, 1});
  c.inputs[2] = OpInput::integers(Shape{3}, 0, 9);
  c.expect_error = "ids must be";
  cases.push_back(std::move(c));
}

}  // namespace hierarchos::ops
