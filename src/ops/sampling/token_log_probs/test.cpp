#include "ops/sampling/token_log_probs/token_log_probs.h"

#include <limits>

#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(const std::string& name, OpInput logits, std::vector<double> ids, int64_t count) {
  OpCase c;
  c.name = name;
  const Shape shape{static_cast<int64_t>(ids.size())};
  c.inputs = {std::move(logits), OpInput::given(DType::I32, shape, std::move(ids))};
  c.build = [count](Graph&, const std::vector<Value>& in) {
    const TokenLogProbs r = token_log_probs(in[0], in[1], count);
    return std::vector<Value>{r.ids, r.values};
  };
  c.grad = false;
  return c;
}

OpInput normal(int64_t rows, int64_t vocab, double scale) {
  return OpInput::normal(DType::F32, Shape{rows, vocab}, scale);
}

}  // namespace

OP_CASES(token_log_probs) {
  cases.push_back(make("one token", normal(2, 1, 3), {0, 0}, 1));
  cases.push_back(make("none wanted", normal(2, 70, 3), {0, 69}, 0));
  cases.push_back(make("all wanted", normal(2, 70, 3), {0, 69}, 70));
  cases.push_back(make("five of a thousand", normal(3, 1000, 10), {0, 500, 999}, 5));
  cases.push_back(make("twenty of fifty thousand", normal(2, 50257, 4), {50256, 3}, 20));
  cases.push_back(make("large scores", OpInput::normal(DType::F32, Shape{2, 300}, 3, 1000), {299, 0}, 4));
  cases.push_back(
      make("equal scores", OpInput::given(DType::F32, Shape{2, 5}, {1, 3, 3, 1, 3, 0, 0, 0, 0, 0}), {0, 4}, 4));
  cases.push_back(make("ids outside", normal(3, 9, 3), {-1, 9, 8}, 2));
  std::vector<double> banned(2 * 200, -std::numeric_limits<double>::infinity());
  banned[77] = 1;
  banned[200] = 2;
  banned[399] = 2;
  cases.push_back(make("scores of -inf", OpInput::given(DType::F32, Shape{2, 200}, banned), {77, 1}, 3));
  OpCase c = make("refuses more than there are", normal(1, 9, 3), {0}, 10);
  c.expect_error = "10 likeliest of 9";
  cases.push_back(std::move(c));
  c = make("perf [1, 262144] 20", normal(1, 262144, 4), {5}, 20);
  c.perf = true;
  cases.push_back(std::move(c));
}

}  // namespace hierarchos::ops
