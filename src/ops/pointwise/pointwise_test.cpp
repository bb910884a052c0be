// What the case grid cannot say: values of single gradients, bits of fused chains, ulps of elementary functions, errors.
#include "ops/pointwise/pointwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "ops/index/gather/gather.h"
#include "ops/pointwise/tile.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/autodiff.h"
#include "runtime/interpreter.h"
#include "runtime/session.h"

namespace hierarchos::ops {
namespace {

TEST(PointwiseExpr, IsCanonicalText) {
  const char* text = "t0=mul(i0,i1);t1=silu(t0);o0=add(t1,i2)";
  EXPECT_EQ(PointwiseExpr::parse(text, 3).to_string(), "t0=mul(i0,i1);t1=silu(t0);o0=add(t1,i2)");
  EXPECT_EQ(PointwiseExpr::parse("o0=i0", 1).to_string(), "o0=i0");
  // Dead registers go, results that are read again keep a name.
  EXPECT_EQ(PointwiseExpr::parse("t0=exp(i0);t1=log(i0);o1=t0;o0=neg(t0)", 1).to_string(), "t0=exp(i0);o0=neg(t0);o1=t0");
  for (double v : {0.1, -0.0, 1e-300, 3.0, 1.0 / 3}) {
    PointwiseExpr e;
    e.code.push_back({PointwiseOp::Const, -1, -1, -1, v});
    e.results = {0};
    const double back = PointwiseExpr::parse(e.to_string(), 0).code[0].value;
    EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(v)) << e.to_string();
  }
  EXPECT_EQ(PointwiseExpr::parse("o0=const(-inf)", 0).code[0].value, -std::numeric_limits<double>::infinity());
}

TEST(PointwiseExpr, RefusesNonsense) {
  for (const char* text : {"", "o0", "o0=", "o0=add(i0)", "o0=add(i0,i1,i0)", "o0=nope(i0)", "o0=i7", "o0=t0", "t1=exp(i0)", "o1=i0",
                           "o0=i0;o0=i1", "o0=const()", "o0=exp(i0);", "o0=exp(i0)x", "t0=exp(i0)", "x0=i0", "o0=neg(i99999999999)"})
    EXPECT_THROW(PointwiseExpr::parse(text, 2), UserError) << text;
}

// Runs one instruction over values, through the CPU's tiles.
std::vector<float> run(PointwiseOp op, const std::vector<float>& x) {
  std::vector<float> y(x.size()), in(cpu::kTile), out(cpu::kTile);
  float* buffers[] = {in.data(), out.data()};
  const cpu::TileInstr instr{op, false, 1, 0, 0, 0};
  for (size_t i = 0; i < x.size(); i += cpu::kTile) {
    const size_t n = std::min<size_t>(cpu::kTile, x.size() - i);
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(i), n, in.begin());
    cpu::run_tile(&instr, 1, buffers, static_cast<int64_t>(n));
    std::copy_n(out.begin(), n, y.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return y;
}

// Distance in units of the last place of the true value, which is a double.
double ulps(float ours, double truth) {
  const auto nearest = static_cast<float>(truth);
  if (!std::isfinite(nearest)) return ours == nearest || (std::isnan(ours) && std::isnan(nearest)) ? 0 : 1e9;
  const float magnitude = std::max(std::fabs(nearest), std::numeric_limits<float>::min());
  const double unit = static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) - static_cast<double>(magnitude);
  return std::fabs(static_cast<double>(ours) - truth) / unit;
}

struct Range {
  PointwiseOp op;
  double low, high;
  double bound;  // ulps
};

class Ulps : public testing::TestWithParam<Range> {};

TEST_P(Ulps, AreFew) {
  const Range& r = GetParam();
  std::vector<float> x;
  const int count = 300000;
  for (int i = 0; i <= count; ++i) x.push_back(static_cast<float>(r.low + (r.high - r.low) * i / count));
  // All magnitudes towards zero, too.
  for (double v = 1e-30; v < r.high; v *= 1.01)
    for (double s : {v, -v})
      if (s >= r.low) x.push_back(static_cast<float>(s));
  const std::vector<float> y = run(r.op, x);
  PointwiseExpr expr;
  expr.inputs = 1;
  expr.code = {{r.op, 0}};
  expr.results = {1};
  double worst = 0;
  float worst_at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double in = static_cast<double>(x[i]);
    double truth = 0;
    evaluate(expr, &in, &truth);
    const double u = ulps(y[i], truth);
    if (u > worst) {
      worst = u;
      worst_at = x[i];
    }
  }
  EXPECT_LE(worst, r.bound) << "at " << worst_at;
  RecordProperty("ulps", fmt::format("{:.2f}", worst));
}

INSTANTIATE_TEST_SUITE_P(Elementary, Ulps,
                         testing::Values(Range{PointwiseOp::Exp, -103, 88.7, 2}, Range{PointwiseOp::Log, 1e-38, 1e4, 2},
                                         Range{PointwiseOp::Tanh, -10, 10, 3}, Range{PointwiseOp::Erf, -5, 5, 2},
                                         Range{PointwiseOp::Sigmoid, -80, 80, 4}, Range{PointwiseOp::Silu, -80, 80, 4},
                                         Range{PointwiseOp::Softplus, -80, 30, 4}, Range{PointwiseOp::Rsqrt, 1e-30, 100, 2},
                                         Range{PointwiseOp::Gelu, 0, 10, 4}, Range{PointwiseOp::GeluTanh, 0, 10, 5}),
                         [](const auto& test) { return std::string(name_of(test.param.op)); });

// Near their zeros sine and cosine are judged by what one period spans.
TEST(Elementary, CircularFunctions) {
  for (PointwiseOp op : {PointwiseOp::Sin, PointwiseOp::Cos}) {
    std::vector<float> x;
    for (int i = -200000; i <= 200000; ++i) x.push_back(static_cast<float>(i) * 0.05f);
    const std::vector<float> y = run(op, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double truth = op == PointwiseOp::Sin ? std::sin(static_cast<double>(x[i])) : std::cos(static_cast<double>(x[i]));
      ASSERT_NEAR(static_cast<double>(y[i]), truth, 2e-7) << name_of(op) << " of " << x[i];
    }
  }
}

TEST(Pointwise, FusedChainsHaveTheBitsOfSingleNodes) {
  std::vector<HostTensor> outputs;
  for (bool optimize : {false, true}) {
    auto graph = std::make_shared<Graph>();
    const Value a = graph->input("a", Type(DType::F32, Shape{37, 650})), b = graph->input("b", Type(DType::F32, Shape{650}));
    const Value t = mul(silu(add(mul(a, 0.3), b)), b);
    graph->output("y", add(mul(t, a), sub(gelu(t), div(a, add(square(a), 1.0)))));
    CpuBackend backend;
    ProgramOptions options;
    options.optimize = optimize;
    auto program = Program::compile(graph, backend, options);
    EXPECT_EQ(program->plan(0).steps.size(), optimize ? 1u : graph->root().nodes.size());
    Session session(program, std::make_shared<Storehouse>(backend));
    std::vector<float> x(37 * 650), y(650);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::cos(static_cast<float>(i) * 1.3f);
    session.set_input("a", x);
    session.set_input("b", y);
    session.run();
    outputs.push_back(session.output("y"));
  }
  EXPECT_TRUE(std::ranges::equal(outputs[0].bytes(), outputs[1].bytes()));
}

// d Σ f(x) / dx by autodiff, in float64. Empty: absent.
std::vector<double> slope(const std::vector<double>& x, const std::function<Value(Value)>& f) {
  Graph graph;
  const Type type(DType::F32, Shape{static_cast<int64_t>(x.size())});
  const Value in = graph.input("x", type);
  const auto grads = gradients(sum(f(in)), std::vector<Value>{in});
  if (!grads[0]) return {};
  graph.output("g", *grads[0]);
  Interpreter interpreter(graph);
  interpreter.set("x", RefTensor{type, x});
  interpreter.run();
  return interpreter.output("g").data;
}

TEST(PointwiseGradient, StraightThroughAndStop) {
  const std::vector<double> x = {0.3, 1.7, -2.2};
  EXPECT_EQ(slope(x, [](Value v) { return straight_through(unary(PointwiseOp::Floor, v), mul(v, 3)); }), std::vector<double>(3, 3.0));
  EXPECT_TRUE(slope(x, [](Value v) { return stop_gradient(square(v)); }).empty());
  EXPECT_EQ(slope(x, [](Value v) { return mul(v, stop_gradient(v)); }), x);
  EXPECT_TRUE(slope(x, [](Value v) { return unary(PointwiseOp::Floor, v); }).empty());
  EXPECT_TRUE(slope(x, [](Value v) { return cast(less(v, mul(v, 2)), DType::F32); }).empty());
}

TEST(PointwiseGradient, AtTheEdges) {
  const double inf = std::numeric_limits<double>::infinity();
  // Bounds count as inside; what is not finite passes.
  EXPECT_EQ(slope({-2, 2, -2.1, 2.1, 0, inf, -inf}, [](Value v) { return clamp(v, -2, 2); }), (std::vector<double>{1, 1, 0, 0, 1, 1, 1}));
  // Ties go to the first operand.
  EXPECT_EQ(slope({0, 1, -1}, [](Value v) { return binary(PointwiseOp::Max, v, mul(v, 2)); }), (std::vector<double>{1, 2, 1}));
  EXPECT_EQ(slope({0, 1, -1}, [](Value v) { return binary(PointwiseOp::Min, v, mul(v, 2)); }), (std::vector<double>{1, 1, 2}));
  EXPECT_EQ(slope({0, -1, 2}, relu), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(slope({0, -3, 2}, [](Value v) { return unary(PointwiseOp::Abs, v); }), (std::vector<double>{0, -1, 1}));
  EXPECT_EQ(slope({0}, sqrt), std::vector<double>{inf});
  EXPECT_EQ(slope({21, 1000}, softplus), (std::vector<double>{1, 1}));
}

TEST(PointwiseGradient, ReadsOnlyWhatItNeeds) {
  Graph graph;
  const Type type(DType::F32, Shape{4});
  const Value a = graph.input("a", type), b = graph.input("b", type);
  const size_t before = graph.root().nodes.size() + 1;
  const auto grads = gradients(sum(add(a, b)), std::vector<Value>{a, b});
  EXPECT_EQ(*grads[0], *grads[1]);  // the same value: no node of its own
  for (size_t n = before; n < graph.root().nodes.size(); ++n)
    for (ValueId v : graph.root().nodes[n].inputs) {
      EXPECT_NE(v, a.id);
      EXPECT_NE(v, b.id);
    }
}

TEST(Gather, GradientWithoutOrderNamesTheScope) {
  Graph graph;
  const Value table = graph.parameter("table", Type(DType::F32, Shape{5, 3}));
  const Value ids = graph.input("ids", Type(DType::I32, Shape{2}));
  Value y;
  {
    const Scope scope(graph, "embed_tokens");
    y = gather(table, ids);
  }
  try {
    gradients(sum(y), std::vector<Value>{table});
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("embed_tokens"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace hierarchos::ops
