#include <limits>

#include "ops/sampling/process_logits/process_logits.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

struct Edit {
  double token, kind, value;
};
constexpr double kInf = std::numeric_limits<double>::infinity();

OpCase make(const std::string& name, OpInput logits, const std::vector<std::vector<double>>& rules, OpInput counts,
            std::vector<double> rows, const std::vector<std::vector<Edit>>& edits) {
  OpCase c;
  c.name = name;
  const auto count = static_cast<int64_t>(rows.size());
  size_t width = 0;
  for (const auto& row : edits) width = std::max(width, row.size());
  std::vector<double> flat, tokens, kinds, values;
  for (const auto& row : rules) flat.insert(flat.end(), row.begin(), row.end());
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t e = 0; e < width; ++e) {
      const bool there = r < edits.size() && e < edits[r].size();
      tokens.push_back(there ? edits[r][e].token : -1);
      kinds.push_back(there ? edits[r][e].kind : 0);
      values.push_back(there ? edits[r][e].value : 0);
    }
  }
  const Shape shape{count, static_cast<int64_t>(width)};
  c.inputs = {std::move(logits),
              OpInput::given(DType::F32, Shape{count, kLogitRules}, flat),
              std::move(counts),
              OpInput::given(DType::I32, Shape{count}, std::move(rows)),
              OpInput::given(DType::I32, shape, tokens),
              OpInput::given(DType::I32, shape, kinds),
              OpInput::given(DType::F32, shape, values)};
  c.build = [](Graph&, const std::vector<Value>& in) {
    return std::vector<Value>{process_logits(in[0], in[1], in[2], in[3], in[4], in[5], in[6])};
  };
  c.grad = false;
  return c;
}

OpInput normal(int64_t rows, int64_t vocab) { return OpInput::normal(DType::F32, Shape{rows, vocab}, 4); }
const std::vector<double> kNothing = {1, 0, 0, 0, 0};

}  // namespace

OP_CASES(process_logits) {
  for (const int64_t vocab : {1, 7, 300, 50257}) {
    const OpInput counts = OpInput::integers(Shape{3, vocab}, 0, 6);
    const auto name = [&](const char* what) { return fmt::format("{} {}", what, vocab); };
    cases.push_back(make(name("nothing"), normal(2, vocab), {kNothing, kNothing}, counts, {0, 1}, {}));
    cases.push_back(
        make(name("penalties"), normal(5, vocab),
             {{1.3, 0, 0, 0, 0}, {1, 0.7, 0, 0, 0}, {1, 0, -0.25, 0, 0}, {0.8, 0.5, 0.1, 0, 0}, {1.3, 2, 3, 0, 0}},
             counts, {2, 1, 0, 2, 7}, {}));
    cases.push_back(make(name("forced"), normal(2, vocab), {{1.3, 0, 0, 1, 0}, {1, 0, 0, 1, 1}}, counts, {0, 1},
                         {{{0, kSet, 0}}, {{0, kSet, 0}, {3, kSet, -2}}}));
  }
  const OpInput counts = OpInput::given(DType::I32, Shape{1, 6}, {0, 1, 2, 3, 4, 0});
  const OpInput logits = OpInput::given(DType::F32, Shape{1, 6}, {1, -2, 3, -4, 5, -6});
  const std::vector<double> penalty = {2, 0.5, 0.25, 0, 0};
  cases.push_back(make("bias comes before penalties", logits, {penalty}, counts, {0},
                       {{{1, kAdd, 5}, {5, kAdd, 1}, {2, kAdd, -kInf}, {9, kAdd, 3}, {-1, kAdd, 3}}}));
  cases.push_back(
      make("order of edits", logits, {{2, 0, 0, 0, 0}}, counts, {0},
           {{{0, kLateBan, 0}, {0, kStretch, 1}, {1, kStretch, 0.5}, {3, kStretch, 0.5}, {3, kBan, 0}, {4, kSet, 9}}}));
  cases.push_back(make("invalid values",
                       OpInput::given(DType::F32, Shape{2, 4}, {NAN, kInf, -kInf, 3, NAN, kInf, 1, 2}),
                       {{1, 0, 0, 0, 1}, {1, 0, 0, 0, 1}}, OpInput::integers(Shape{1, 4}, 0, 1), {-1, 0},
                       {{{3, kBan, 0}}, {{2, kLateBan, 0}}}));
  OpCase c = make("refuses counts of another vocabulary", normal(1, 6), {kNothing},
                  OpInput::integers(Shape{1, 7}, 0, 9), {0}, {});
  c.expect_error = "counts must be";
  cases.push_back(std::move(c));
  std::vector<double> few(262144);
  for (size_t i = 0; i < few.size(); i += 257) few[i] = 3;
  c = make("perf [1, 262144]", normal(1, 262144), {{1.3, 0.5, 0.1, 0, 0}},
           OpInput::given(DType::I32, Shape{1, 262144}, few), {0}, {});
  c.perf = true;
  cases.push_back(std::move(c));
}

}  // namespace hierarchos::ops
