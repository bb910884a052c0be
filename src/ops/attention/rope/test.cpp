#include "ops/attention/rope/rope.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

struct Options {
  int64_t tokens = 3, heads = 2, d = 8, rotated = 8;
  DType dtype = DType::F32;
  bool positions = false, interleaved = false, sliced = false;
};

OpCase make(const Options& o) {
  OpCase c;
  c.name = fmt::format("[{}, {}, {}] R={} {}{}{}{}", o.tokens, o.heads, o.d, o.rotated, name_of(o.dtype),
                       o.positions ? " positions" : "", o.interleaved ? " interleaved" : "", o.sliced ? " slice" : "");
  const int64_t rows = o.positions ? 11 : o.tokens;
  c.inputs = {OpInput::normal(o.dtype, o.sliced ? Shape{o.tokens, o.heads + 3, o.d} : Shape{o.tokens, o.heads, o.d}),
              OpInput::uniform(DType::F32, Shape{rows, o.rotated / 2}, -1, 1).constant(),
              OpInput::uniform(DType::F32, Shape{rows, o.rotated / 2}, -1, 1).constant()};
  if (o.positions) c.inputs.push_back(OpInput::integers(Shape{o.tokens}, 0, rows));
  c.build = [o](Graph&, const std::vector<Value>& v) {
    const Value x = o.sliced ? slice(v[0], 1, 2, 2 + o.heads) : v[0];
    return std::vector<Value>{
        rope(x, v[1], v[2], o.positions ? std::optional<Value>(v[3]) : std::nullopt, o.interleaved)};
  };
  c.tolerance = o.dtype == DType::F32 ? 2e-6 : o.dtype == DType::F16 ? 6e-4 : 4e-3;
  c.grad = o.tokens * o.heads * o.d < 2000;
  return c;
}

OpCase error(const std::string& name, std::vector<OpInput> inputs, const std::string& text) {
  OpCase c;
  c.name = name;
  c.inputs = std::move(inputs);
  c.build = [](Graph&, const std::vector<Value>& v) {
    return std::vector<Value>{rope(v[0], v[1], v[2], v.size() > 3 ? std::optional<Value>(v[3]) : std::nullopt)};
  };
  c.expect_error = text;
  return c;
}

}  // namespace

OP_CASES(rope) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (bool interleaved : {false, true})
      for (const auto& [t, h, d, r] : std::vector<std::array<int64_t, 4>>{{1, 1, 2, 2},
                                                                          {3, 2, 8, 8},
                                                                          {5, 3, 64, 64},
                                                                          {7, 1, 80, 32},
                                                                          {4, 2, 33, 14},
                                                                          {300, 5, 66, 66},
                                                                          {2, 3, 6, 0},
                                                                          {0, 2, 8, 8}})
        for (bool positions : {false, true})
          cases.push_back(make({.tokens = t,
                                .heads = h,
                                .d = d,
                                .rotated = r,
                                .dtype = dtype,
                                .positions = positions,
                                .interleaved = interleaved}));
  cases.push_back(make({.tokens = 9, .heads = 2, .d = 48, .rotated = 48, .sliced = true}));
  cases.push_back(make(
      {.tokens = 9, .heads = 2, .d = 48, .rotated = 20, .dtype = DType::BF16, .interleaved = true, .sliced = true}));

  const auto f32 = [](Shape shape) { return OpInput::normal(DType::F32, shape); };
  cases.push_back(error("tables too wide", {f32({3, 2, 8}), f32({3, 5}), f32({3, 5})}, "a head has 8"));
  cases.push_back(error("tables of other lengths", {f32({3, 2, 8}), f32({3, 4}), f32({4, 4})}, "sin is"));
  cases.push_back(error("no row a token", {f32({3, 2, 8}), f32({4, 4}), f32({4, 4})}, "a row a token"));
  cases.push_back(error("positions of another length",
                        {f32({3, 2, 8}), f32({4, 4}), f32({4, 4}), OpInput::integers(Shape{2}, 0, 4)},
                        "positions must be"));
  cases.push_back(error("rank", {f32({3, 8}), f32({3, 4}), f32({3, 4})}, "[T, H, D]"));

  for (DType dtype : {DType::F32, DType::BF16})
    for (bool interleaved : {false, true}) {
      OpCase c =
          make({.tokens = 2048, .heads = 12, .d = 64, .rotated = 64, .dtype = dtype, .interleaved = interleaved});
      c.name += " perf";
      c.perf = true;
      cases.push_back(c);
    }
}

}  // namespace hierarchos::ops
