#include "passes/autodiff.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/matmul/matmul/matmul.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/views/views.h"
#include "passes/passes.h"
#include "runtime/interpreter.h"

namespace hierarchos {
namespace {

RefTensor tensor(Shape shape, std::vector<double> data) { return {Type(DType::F32, shape), std::move(data)}; }

RefTensor ramp(Shape shape, double scale, double phase) {
  std::vector<double> data;
  for (int64_t i = 0; i < shape.elements(); ++i) data.push_back(scale * std::sin(phase + 0.7 * static_cast<double>(i)));
  return tensor(shape, data);
}

// Central differences of output "loss" with respect to a leaf, in float64.
std::vector<double> differences(const Graph& graph, std::map<std::string, RefTensor> leaves, const std::string& name) {
  std::vector<double> out;
  const double h = 1e-5;
  for (size_t i = 0; i < leaves.at(name).data.size(); ++i) {
    double side[2];
    for (int s = 0; s < 2; ++s) {
      auto moved = leaves;
      moved.at(name).data[i] += s ? h : -h;
      Interpreter run(graph);
      for (const auto& [n, v] : moved) run.set(n, v);
      run.run();
      side[s] = run.output("loss").data[0];
    }
    out.push_back((side[1] - side[0]) / (2 * h));
  }
  return out;
}

void expect_gradients(const std::function<Value(Graph&)>& build, const std::map<std::string, RefTensor>& leaves, SaveSet save) {
  Graph plain;
  plain.output("loss", build(plain));
  Graph graph;
  const Value loss = build(graph);
  std::vector<Value> wrt;
  for (const Parameter& p : graph.parameters()) wrt.push_back({&graph.root(), p.value});
  const auto grads = gradients(loss, wrt, save);
  std::vector<std::string> names;
  for (const Parameter& p : graph.parameters()) names.push_back(p.name);
  for (size_t i = 0; i < grads.size(); ++i) {
    ASSERT_TRUE(grads[i].has_value()) << names[i];
    graph.output("d" + names[i], *grads[i]);
  }
  for (bool optimized : {false, true}) {
    if (optimized) optimize(graph);
    Interpreter run(graph);
    for (const auto& [n, v] : leaves) run.set(n, v);
    run.run();
    for (const std::string& name : names) {
      const auto expected = differences(plain, leaves, name);
      const auto& got = run.output("d" + name).data;
      ASSERT_EQ(got.size(), expected.size());
      for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-7 + 1e-6 * std::abs(expected[k])) << name << k << optimized;
    }
  }
}

class SaveSets : public ::testing::TestWithParam<SaveSet> {};
INSTANTIATE_TEST_SUITE_P(All, SaveSets, ::testing::Values(SaveSet::Auto, SaveSet::All, SaveSet::None));

TEST_P(SaveSets, LayersThroughCalls) {
  const auto build = [](Graph& g) {
    Value x = g.parameter("x", Type(DType::F32, {3, 4}));
    for (int layer = 0; layer < 3; ++layer)
      x = g.call("layers." + std::to_string(layer), {x}, [&](std::span<const Value> in) -> std::vector<Value> {
        const Value w = g.parameter("w" + std::to_string(layer), Type(DType::F32, {4, 4}));
        const Value h = ops::matmul(ops::silu(in[0]), w);
        return {ops::add(in[0], ops::mul(h, ops::sigmoid(h)))};
      })[0];
    return ops::sum(ops::square(x));
  };
  expect_gradients(build,
                   {{"x", ramp({3, 4}, 0.8, 0.1)}, {"w0", ramp({4, 4}, 0.5, 1)}, {"w1", ramp({4, 4}, 0.4, 2)}, {"w2", ramp({4, 4}, 0.6, 3)}},
                   GetParam());
}

TEST_P(SaveSets, RecurrenceThroughScan) {
  const auto build = [](Graph& g) {
    const Value x = g.parameter("x", Type(DType::F32, {5, 2, 3}));
    const Value h0 = g.parameter("h", Type(DType::F32, {2, 3}));
    const Value w = g.parameter("w", Type(DType::F32, {3, 3}));
    auto out = g.scan("cell", 5, {h0}, {x}, [&](std::span<const Value> in) -> std::vector<Value> {
      const Value h = ops::tanh(ops::add(ops::matmul(in[0], w), in[1]));
      return {h, ops::mul(h, in[1])};
    });
    return ops::add(ops::sum(ops::square(out[0])), ops::sum(out[1]));
  };
  expect_gradients(build, {{"x", ramp({5, 2, 3}, 0.9, 0.3)}, {"h", ramp({2, 3}, 0.4, 1.3)}, {"w", ramp({3, 3}, 0.7, 2.2)}}, GetParam());
}

TEST_P(SaveSets, ScanInsideACall) {
  const auto build = [](Graph& g) {
    Value x = g.parameter("x", Type(DType::F32, {4, 3}));
    for (int layer = 0; layer < 2; ++layer)
      x = g.call("layers." + std::to_string(layer), {x}, [&](std::span<const Value> in) -> std::vector<Value> {
        const Value decay = g.parameter("decay" + std::to_string(layer), Type(DType::F32, {3}));
        auto out = g.scan("mix", 4, {ops::zeros(g, Type(DType::F32, {3}))}, {in[0]}, [&](std::span<const Value> s) -> std::vector<Value> {
          const Value next = ops::add(ops::mul(s[0], ops::sigmoid(decay)), s[1]);
          return {next, next};
        });
        return {ops::silu(out[1])};
      })[0];
    return ops::sum(ops::square(x));
  };
  expect_gradients(build, {{"x", ramp({4, 3}, 0.9, 0.3)}, {"decay0", ramp({3}, 1, 1.3)}, {"decay1", ramp({3}, 1, 0.2)}}, GetParam());
}

TEST(Autodiff, AbsentIsNotZero) {
  Graph g;
  const Value a = g.parameter("a", Type(DType::F32, {2}));
  const Value b = g.parameter("b", Type(DType::F32, {2}));
  const Value loss = ops::sum(ops::mul(a, ops::stop_gradient(ops::exp(b))));
  const std::vector<Value> wrt = {a, b};
  const auto grads = gradients(loss, wrt);
  EXPECT_TRUE(grads[0].has_value());
  EXPECT_FALSE(grads[1].has_value());
}

TEST(Graph, EqualBodiesAreOneFunction) {
  Graph g;
  Value x = g.input("x", Type(DType::F32, {3}));
  for (int layer = 0; layer < 4; ++layer)
    x = g.call("layers." + std::to_string(layer), {x}, [&](std::span<const Value> in) -> std::vector<Value> {
      return {ops::mul(in[0], g.parameter("w" + std::to_string(layer), Type(DType::F32, {3})))};
    })[0];
  EXPECT_EQ(g.function_count(), 2u);  // the root and the layer
}

TEST(Graph, ShapeErrorsNameScopeOperatorAndShapes) {
  Graph g;
  const Value x = g.input("x", Type(DType::F32, {2, 3}));
  try {
    g.call("model.layers.3", {x}, [&](std::span<const Value> in) -> std::vector<Value> {
      const Scope scope(g, "self_attn.q_proj");
      return {ops::matmul(in[0], g.parameter("w", Type(DType::F32, {4, 5})))};
    });
    FAIL();
  } catch (const ShapeError& e) {
    const std::string what = e.what();
    for (const char* part : {"model.layers.3.self_attn.q_proj", "matmul", "f32[2, 3]", "f32[4, 5]"})
      EXPECT_NE(what.find(part), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace hierarchos
