#include <cmath>
#include <limits>

#include "ops/pointwise/pointwise.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

using Build = std::function<std::vector<Value>(Graph&, const std::vector<Value>&)>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> specials() {
  return {0.0, -0.0, 1.0, -1.0, kInf, -kInf, kNaN, 1e-40, -1e-40, 3e38, -3e38, 88.5, -88.5, 100.0, -100.0, 0.5, -104.5, 20.0, 20.5};
}

struct Unary {
  PointwiseOp op;
  double low, high;  // where the tests draw: without the points where the derivative jumps
  bool specials = true;
};

const Unary kUnary[] = {
    {PointwiseOp::Neg, -3, 3},       {PointwiseOp::Abs, 0.1, 3},     {PointwiseOp::Sign, 0.1, 3},
    {PointwiseOp::Exp, -8, 8},       {PointwiseOp::Log, 0.05, 9},    {PointwiseOp::Sqrt, 0.05, 9},
    {PointwiseOp::Rsqrt, 0.05, 9},   {PointwiseOp::Recip, 0.2, 3},   {PointwiseOp::Square, -3, 3},
    {PointwiseOp::Tanh, -4, 4},      {PointwiseOp::Sigmoid, -9, 9},  {PointwiseOp::Silu, -9, 9},
    {PointwiseOp::Gelu, -4, 4},      {PointwiseOp::GeluTanh, -4, 4}, {PointwiseOp::Relu, 0.1, 3},
    {PointwiseOp::Erf, -4, 4},       {PointwiseOp::Sin, -30, 30, false}, {PointwiseOp::Cos, -30, 30, false},
    {PointwiseOp::Softplus, -9, 19}, {PointwiseOp::Floor, 0.1, 0.9}, {PointwiseOp::IsFinite, -3, 3},
};

OpCase make(const std::string& name, std::vector<OpInput> inputs, Build build, double tolerance = 5e-7) {
  OpCase c;
  c.name = name;
  c.inputs = std::move(inputs);
  c.build = std::move(build);
  c.tolerance = tolerance;
  return c;
}

}  // namespace

OP_CASES(pointwise) {
  // Each operation: types, sizes around tiles and vectors, special values.
  for (const Unary& u : kUnary) {
    const std::string name(name_of(u.op));
    const Build build = [op = u.op](Graph&, const std::vector<Value>& in) { return std::vector<Value>{unary(op, in[0])}; };
    for (DType dtype : {DType::F32, DType::BF16, DType::F16})
      for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{15}, int64_t{1043}}) {
        if (dtype != DType::F32 && n != 1043) continue;
        auto c = make(fmt::format("{} [{}] {}", name, n, name_of(dtype)), {OpInput::uniform(dtype, Shape{n}, u.low, u.high)}, build);
        // Beside zero a function of one element may lose digits that the norm of many hides.
        if (n < 1000) c.tolerance = 2e-6;
        cases.push_back(std::move(c));
      }
    if (u.specials) {
      const std::vector<double> values = specials();
      auto c = make(name + " special values", {OpInput::given(DType::F32, Shape{static_cast<int64_t>(values.size())}, values)}, build);
      c.grad = false;
      cases.push_back(std::move(c));
    }
  }
  for (PointwiseOp op : {PointwiseOp::Sin, PointwiseOp::Cos}) {
    auto c = make(std::string(name_of(op)) + " far from zero", {OpInput::uniform(DType::F32, Shape{300}, -1e5, 1e5)},
                  [op](Graph&, const std::vector<Value>& in) { return std::vector<Value>{unary(op, in[0])}; });
    c.grad = false;
    cases.push_back(std::move(c));
  }

  // Two operands: every broadcast, every type.
  const PointwiseOp arithmetic[] = {PointwiseOp::Add, PointwiseOp::Sub, PointwiseOp::Mul,
                                    PointwiseOp::Div, PointwiseOp::Min, PointwiseOp::Max};
  const std::pair<Shape, Shape> shapes[] = {
      {Shape{7}, Shape{7}},       {Shape{3, 5}, Shape{5}},          {Shape{3, 5}, Shape{3, 1}},
      {Shape{}, Shape{4, 3}},     {Shape{3, 1, 5}, Shape{4, 1}},    {Shape{2, 3, 4, 5}, Shape{3, 1, 5}},
      {Shape{0, 5}, Shape{1, 5}}, {Shape{2, 1300}, Shape{1300}},    {Shape{5, 300}, Shape{5, 1}},
      {Shape{1}, Shape{1, 1, 1}}, {Shape{2, 3, 2, 3, 2, 3}, Shape{3, 1, 3, 1, 3}}, {Shape{1, 2050}, Shape{3, 1}},
  };
  for (PointwiseOp op : arithmetic)
    for (const auto& [a, b] : shapes)
      cases.push_back(make(fmt::format("{} {} {}", name_of(op), a.to_string(), b.to_string()),
                           {OpInput::normal(DType::F32, a), OpInput::uniform(DType::F32, b, 0.5, 2)},
                           [op](Graph&, const std::vector<Value>& in) { return std::vector<Value>{binary(op, in[0], in[1])}; }));
  for (auto [x, y] : {std::pair{DType::BF16, DType::BF16}, {DType::F16, DType::F16}, {DType::BF16, DType::F32}, {DType::F16, DType::BF16}})
    for (const Shape& b : {Shape{70}, Shape{33, 1}, Shape{33, 70}})
      cases.push_back(make(fmt::format("mul [33, 70] {} {} {}", name_of(x), b.to_string(), name_of(y)),
                           {OpInput::normal(x, Shape{33, 70}), OpInput::normal(y, b)},
                           [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{mul(in[0], in[1])}; }));
  for (PointwiseOp op : {PointwiseOp::Min, PointwiseOp::Max}) {
    auto c = make(std::string(name_of(op)) + " of NaN",
                  {OpInput::given(DType::F32, Shape{6}, {1, kNaN, kNaN, -kInf, kInf, 2}),
                   OpInput::given(DType::F32, Shape{6}, {kNaN, 1, kNaN, kNaN, 3, 2})},
                  [op](Graph&, const std::vector<Value>& in) { return std::vector<Value>{binary(op, in[0], in[1])}; }, 0);
    c.grad = false;
    cases.push_back(std::move(c));
  }

  // Comparisons, integers, choice.
  for (PointwiseOp op : {PointwiseOp::Lt, PointwiseOp::Le, PointwiseOp::Eq, PointwiseOp::Ne}) {
    const Build build = [op](Graph&, const std::vector<Value>& in) { return std::vector<Value>{binary(op, in[0], in[1])}; };
    cases.push_back(make(std::string(name_of(op)) + " floats",
                         {OpInput::given(DType::F32, Shape{5}, {1, 2, 3, kNaN, -0.0}), OpInput::given(DType::F32, Shape{5}, {2, 2, 1, kNaN, 0.0})},
                         build));
    cases.push_back(make(std::string(name_of(op)) + " integers", {OpInput::integers(Shape{40}, -3, 3), OpInput::integers(Shape{40}, -3, 3)}, build));
  }
  for (PointwiseOp op : {PointwiseOp::Add, PointwiseOp::Sub, PointwiseOp::Mul, PointwiseOp::Min, PointwiseOp::Max,
                         PointwiseOp::And, PointwiseOp::Or})
    cases.push_back(make(std::string(name_of(op)) + " of integers", {OpInput::integers(Shape{3, 21}, -9, 9), OpInput::integers(Shape{21}, -2, 2)},
                         [op](Graph&, const std::vector<Value>& in) { return std::vector<Value>{binary(op, in[0], in[1])}; }));
  for (PointwiseOp op : {PointwiseOp::Neg, PointwiseOp::Abs, PointwiseOp::Sign, PointwiseOp::Square, PointwiseOp::Not})
    cases.push_back(make(std::string(name_of(op)) + " of integers", {OpInput::integers(Shape{37}, -2, 3)},
                         [op](Graph&, const std::vector<Value>& in) { return std::vector<Value>{unary(op, in[0])}; }));
  cases.push_back(make("clamp of integers", {OpInput::integers(Shape{37}, -9, 9)},
                       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{clamp(in[0], -2, 5)}; }));
  cases.push_back(make("select", {OpInput::integers(Shape{9, 1}, 0, 2), OpInput::normal(DType::F32, Shape{9, 40}), OpInput::normal(DType::F32, Shape{40})},
                       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{select(in[0], in[1], in[2])}; }, 0));
  cases.push_back(make("select of integers", {OpInput::integers(Shape{50}, -1, 2), OpInput::integers(Shape{50}, -9, 9), OpInput::integers(Shape{50}, -9, 9)},
                       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{select(in[0], in[1], in[2])}; }));
  {
    auto c = make("select keeps NaN out", {OpInput::given(DType::F32, Shape{3}, {kNaN, -1, 4})},
                  [](Graph& g, const std::vector<Value>& in) {
                    const Value zero = full(g, Shape{}, 0);
                    return std::vector<Value>{select(less(zero, in[0]), log(in[0]), zero)};
                  });
    c.grad = false;
    cases.push_back(std::move(c));
  }
  cases.push_back(make("clamp", {OpInput::normal(DType::F32, Shape{333}, 2)},
                       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{clamp(in[0], -1.5, 1)}; }, 0));
  {
    auto c = make("clamp passes what is not finite", {OpInput::given(DType::F32, Shape{6}, {kNaN, kInf, -kInf, 1, 7, -7})},
                  [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{clamp(in[0], -2, 2)}; }, 0);
    c.grad = false;
    cases.push_back(std::move(c));
  }

  // Casts.
  const DType floats[] = {DType::F32, DType::BF16, DType::F16};
  for (DType from : floats)
    for (DType to : floats)
      if (from != to)
        cases.push_back(make(fmt::format("cast {} to {}", name_of(from), name_of(to)), {OpInput::normal(from, Shape{3, 35})},
                             [to](Graph&, const std::vector<Value>& in) { return std::vector<Value>{cast(in[0], to)}; }, 0));
  for (DType to : {DType::BF16, DType::F16}) {
    auto c = make(fmt::format("cast special values to {}", name_of(to)),
                  {OpInput::given(DType::F32, Shape{10}, {kNaN, kInf, -kInf, 1e38, 3.4e38, 65519, 65520, 1e-8, 1.00390625, 0.0})},
                  [to](Graph&, const std::vector<Value>& in) { return std::vector<Value>{cast(in[0], to)}; }, 0);
    c.grad = false;
    cases.push_back(std::move(c));
  }
  cases.push_back(make("cast i32 to f32", {OpInput::integers(Shape{70}, -99999, 99999)},
                       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{cast(in[0], DType::F32)}; }, 0));
  cases.push_back(make("cast f32 to i32", {OpInput::uniform(DType::F32, Shape{70}, -50, 50)},
                       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{cast(in[0], DType::I32)}; }));

  // Strided operands, and chains that passes fuse.
  for (const DType dtype : floats) {
    cases.push_back(make(fmt::format("of a transpose {}", name_of(dtype)), {OpInput::normal(dtype, Shape{37, 21}), OpInput::normal(dtype, Shape{21, 37})},
                         [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{add(transpose(in[0]), in[1])}; }));
    cases.push_back(make(fmt::format("of slices {}", name_of(dtype)), {OpInput::normal(dtype, Shape{9, 2, 40})},
                         [](Graph&, const std::vector<Value>& in) {
                           return std::vector<Value>{mul(silu(slice(in[0], 1, 0, 1)), slice(in[0], 1, 1, 2))};
                         }));
    cases.push_back(make(fmt::format("of a permuted slice {}", name_of(dtype)), {OpInput::normal(dtype, Shape{5, 6, 7, 8})},
                         [](Graph&, const std::vector<Value>& in) {
                           return std::vector<Value>{exp(permute(slice(in[0], 2, 1, 6), {2, 0, 3, 1}))};
                         }));
    cases.push_back(make(fmt::format("of long slices {}", name_of(dtype)), {OpInput::normal(dtype, Shape{3, 2700})},
                         [](Graph&, const std::vector<Value>& in) {
                           return std::vector<Value>{mul(gelu(slice(in[0], 1, 0, 1350)), slice(in[0], 1, 1350, 2700))};
                         }));
  }
  cases.push_back(make("an expanded operand", {OpInput::normal(DType::F32, Shape{4, 1, 6})},
                       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{square(expand(in[0], Shape{4, 5, 6}))}; }));
  cases.push_back(make("a chain with three results",
                       {OpInput::normal(DType::F32, Shape{11, 130}), OpInput::normal(DType::F32, Shape{130}), OpInput::normal(DType::F32, Shape{11, 1})},
                       [](Graph&, const std::vector<Value>& in) {
                         const Value a = tanh(add(in[0], in[1])), b = mul(a, sigmoid(in[2])), c = sub(square(b), mul(a, 0.25));
                         return std::vector<Value>{a, b, add(c, 1.0)};
                       }));
  cases.push_back(make("a long chain", {OpInput::normal(DType::F32, Shape{1029})},
                       [](Graph&, const std::vector<Value>& in) {
                         Value x = in[0];
                         for (int i = 0; i < 20; ++i) x = add(mul(tanh(x), 1.1), mul(square(x), 0.01 * i));
                         return std::vector<Value>{x};
                       }, 2e-6));
  cases.push_back(make("softcap and mask", {OpInput::normal(DType::F32, Shape{6, 6}, 20), OpInput::integers(Shape{6}, 0, 6)},
                       [](Graph& g, const std::vector<Value>& in) {
                         const Value soft = mul(tanh(mul(in[0], 1.0 / 30)), 30);
                         const Value mask = less(in[1], full(g, Shape{6, 1}, 3, DType::I32));
                         return std::vector<Value>{select(mask, soft, full(g, Shape{}, -1e4))};
                       }));
  cases.push_back(make("constants", {OpInput::normal(DType::F32, Shape{1})},
                       [](Graph& g, const std::vector<Value>&) {
                         return std::vector<Value>{full(g, Shape{3, 5}, 0.1), full(g, Shape{}, -2, DType::I32), full(g, Shape{0, 2}, 1),
                                                   full(g, Shape{2100}, 0.3, DType::BF16)};
                       }, 0));
  for (const char* name : {"gelu", "gelu_10", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "laplace", "leaky_relu", "linear", "mish",
                           "quick_gelu", "relu", "relu2", "relu6", "sigmoid", "silu", "swish", "tanh"})
    cases.push_back(make(std::string("activation ") + name, {OpInput::uniform(DType::F32, Shape{203}, -5, 5)},
                         [name](Graph&, const std::vector<Value>& in) { return std::vector<Value>{activation(name, in[0])}; }));

  // What must be refused.
  const auto refused = [&](const std::string& name, std::vector<OpInput> inputs, Build build, const std::string& error) {
    auto c = make("refuses " + name, std::move(inputs), std::move(build));
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("shapes that do not broadcast", {OpInput::normal(DType::F32, Shape{3, 4}), OpInput::normal(DType::F32, Shape{3})},
          [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{add(in[0], in[1])}; }, "[3, 4], [3] do not broadcast");
  refused("a float and an integer", {OpInput::normal(DType::F32, Shape{3}), OpInput::integers(Shape{3}, 0, 5)},
          [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{add(in[0], in[1])}; }, "to_float");
  refused("exp of integers", {OpInput::integers(Shape{3}, 0, 5)},
          [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{exp(in[0])}; }, "exp takes floating operands");
  refused("an unknown activation", {OpInput::normal(DType::F32, Shape{3})},
          [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{activation("xielu", in[0])}; }, "xielu");
  refused("a fraction beside integers", {OpInput::integers(Shape{3}, 0, 5)},
          [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{mul(in[0], 0.5)}; }, "0.5");

  const auto perf = [&](const std::string& name, std::vector<OpInput> inputs, Build build) {
    auto c = make(name, std::move(inputs), std::move(build));
    c.perf = true;
    cases.push_back(std::move(c));
  };
  perf("perf silu mul [2048, 1536] f32", {OpInput::normal(DType::F32, Shape{2048, 1536}), OpInput::normal(DType::F32, Shape{2048, 1536})},
       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{mul(silu(in[0]), in[1])}; });
  perf("perf gelu [2048, 1536] bf16", {OpInput::normal(DType::BF16, Shape{2048, 1536})},
       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{gelu(in[0])}; });
  perf("perf add bias [2048, 576] f32", {OpInput::normal(DType::F32, Shape{2048, 576}), OpInput::normal(DType::F32, Shape{576})},
       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{add(in[0], in[1])}; });
  perf("perf transposed add [2048, 1536] f32", {OpInput::normal(DType::F32, Shape{1536, 2048}), OpInput::normal(DType::F32, Shape{2048, 1536})},
       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{add(transpose(in[0]), in[1])}; });
  perf("perf cast f32 to bf16 [2048, 1536]", {OpInput::normal(DType::F32, Shape{2048, 1536})},
       [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{cast(in[0], DType::BF16)}; });
}

}  // namespace hierarchos::ops
