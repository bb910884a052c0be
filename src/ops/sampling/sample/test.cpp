#include "ops/sampling/sample/sample.h"

#include <limits>

#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

struct Row {
  double temperature = 1, top_k = 0, top_p = 1, min_p = 0, typical_p = 1, epsilon = 0, eta = 0;
};

OpCase make(const std::string& name, OpInput scores, const std::vector<Row>& rows) {
  OpCase c;
  c.name = name;
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<double> settings, keys, steps;
  for (const Row& r : rows) {
    settings.insert(settings.end(), {r.temperature, r.top_k, r.top_p, r.min_p, r.typical_p, r.epsilon, r.eta});
    const auto i = static_cast<double>(keys.size());
    keys.insert(keys.end(), {1234567 * i - 2147000000, 89 - i});
    steps.push_back(i * 7);
  }
  c.inputs = {std::move(scores), OpInput::given(DType::F32, Shape{count, kSampleSettings}, settings),
              OpInput::given(DType::I32, Shape{count, 2}, keys), OpInput::given(DType::I32, Shape{count}, steps)};
  c.build = [](Graph&, const std::vector<Value>& in) {
    const SampleResult r = sample(in[0], in[1], in[2], in[3]);
    return std::vector<Value>{r.ids, r.facts};
  };
  c.grad = false;
  return c;
}

OpInput logits(int64_t rows, int64_t vocab, double scale = 3) {
  return OpInput::normal(DType::F32, Shape{rows, vocab}, scale);
}

}  // namespace

OP_CASES(sample) {
  const std::vector<std::pair<std::string, Row>> kinds = {
      {"greedy", {.temperature = 0}},
      {"plain", {}},
      {"hot", {.temperature = 2.5}},
      {"cold", {.temperature = 0.3}},
      {"top-k 1", {.top_k = 1}},
      {"top-k 5", {.temperature = 0.7, .top_k = 5}},
      {"top-k 300", {.top_k = 300}},
      {"top-p 0.9", {.top_p = 0.9}},
      {"top-p 0.05 hot", {.temperature = 4, .top_p = 0.05}},
      {"top-p 0.99", {.temperature = 1.5, .top_p = 0.99}},
      {"top-p 0", {.top_p = 0}},
      {"min-p", {.min_p = 0.05}},
      {"min-p 1", {.min_p = 1}},
      {"typical", {.typical_p = 0.6}},
      {"epsilon", {.epsilon = 3e-3}},
      {"eta", {.eta = 2e-3}},
      {"all",
       {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.02, .typical_p = 0.9, .epsilon = 1e-3, .eta = 1e-3}},
  };
  for (const int64_t vocab : {1, 2, 65, 1000, 50257}) {
    for (const auto& [name, row] : kinds) {
      const int64_t rows = vocab > 10000 ? 2 : 5;
      cases.push_back(make(fmt::format("{} [{}, {}]", name, rows, vocab), logits(rows, vocab),
                           std::vector<Row>(static_cast<size_t>(rows), row)));
    }
  }
  std::vector<Row> mixed;
  for (const auto& [name, row] : kinds) mixed.push_back(row);
  cases.push_back(make("a row of each kind", logits(static_cast<int64_t>(mixed.size()), 4099), mixed));
  cases.push_back(
      make("flat", logits(4, 20000, 1e-3), {{.top_p = 0.5}, {.top_k = 50}, {.min_p = 0.5}, {.temperature = 0.2}}));
  cases.push_back(make("far apart", logits(4, 3000, 60), {{.top_p = 0.9}, {.top_k = 50}, {}, {.typical_p = 0.9}}));

  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const Row top_p{.top_p = 0.6}, top_k{.top_k = 2}, plain;
  cases.push_back(make("equal scores",
                       OpInput::given(DType::F32, Shape{3, 6}, {1, 1, 1, 1, 1, 1, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 5}),
                       {top_p, top_k, top_p}));
  cases.push_back(
      make("special values",
           OpInput::given(DType::F32, Shape{6, 4}, {nan,  1, 2,    nan, -inf, -inf, -inf, -inf, nan, nan, nan, nan,
                                                    -inf, 3, -inf, 2,   nan,  1,    2,    nan,  1,   inf, inf, 0}),
           {plain, plain, top_p, top_k, top_p, plain}));
  OpCase c = make("refuses settings of another width", logits(2, 9), {plain, plain});
  c.inputs[1] = OpInput::uniform(DType::F32, Shape{2, 3}, 0, 1);
  c.expect_error = "settings must be";
  cases.push_back(std::move(c));
  c = make("refuses rows without scores", OpInput::normal(DType::F32, Shape{2, 0}), {plain, plain});
  c.expect_error = "nothing to choose";
  cases.push_back(std::move(c));
  for (const auto& [name, row] : kinds) {
    for (const int64_t vocab : {49152, 262144}) {
      c = make(fmt::format("perf {} [1, {}]", name, vocab), logits(1, vocab), {row});
      c.perf = true;
      cases.push_back(std::move(c));
    }
  }
}

}  // namespace hierarchos::ops
