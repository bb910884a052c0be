// What the fusion passes join, and that it changes no result.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "backend/cpu/cpu_backend.h"
#include "ops/matmul/matmul/matmul.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/passes.h"
#include "runtime/interpreter.h"
#include "runtime/session.h"

namespace hierarchos {
namespace {

HostTensor waves(Shape shape, double phase) {
  HostTensor t(DType::F32, shape);
  double i = phase;
  for (float& v : t.mutable_data<float>()) v = static_cast<float>(std::sin(i += 1.1));
  return t;
}

// Builds a graph over inputs x [4, 6], w [5, 6], v [5, 6], b [5], r [4, 5], s [6] and gives its nodes after the passes.
struct Fused {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::vector<std::string> operators;

  explicit Fused(const std::function<Value(const std::map<std::string, Value>&)>& build) {
    const std::pair<const char*, Shape> inputs[] = {{"x", {4, 6}}, {"w", {5, 6}}, {"v", {5, 6}}, {"b", {5}}, {"r", {4, 5}}, {"s", {6}}};
    std::map<std::string, Value> values;
    for (const auto& [name, shape] : inputs) values[name] = graph->input(name, Type(DType::F32, shape));
    graph->output("y", build(values));
    const auto run = [&] {
      Interpreter interpreter(*graph);
      double phase = 0;
      for (const auto& [name, shape] : inputs) interpreter.set(name, waves(shape, phase++));
      interpreter.run();
      return interpreter.output("y").data;
    };
    const std::vector<double> before = run();
    optimize(*graph);
    const std::vector<double> after = run();
    EXPECT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-13);
    for (const Node& node : graph->root().nodes) operators.push_back(node.op->name);

    // And on a device.
    CpuBackend backend;
    Session session(Program::compile(graph, backend), std::make_shared<Storehouse>(backend));
    double phase = 0;
    for (const auto& [name, shape] : inputs) {
      if (session.program().graph().inputs().size()) session.set_input(name, waves(shape, phase));
      ++phase;
    }
    session.run();
    const std::vector<double> got = session.output("y").to_doubles();
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(got[i], before[i], 1e-5 * (1 + std::abs(before[i])));
  }
  const Attrs& product() const {
    for (const Node& node : graph->root().nodes)
      if (node.op == &ops::matmul_def()) return node.attrs;
    static const Attrs none;
    return none;
  }
};

using Values = std::map<std::string, Value>;
const std::vector<std::string> kOneProduct = {"matmul"};

TEST(Fusion, ResidualAndActivation) {
  const Fused f([](const Values& v) { return ops::add(v.at("r"), ops::silu(ops::matmul(v.at("x"), v.at("w")))); });
  EXPECT_EQ(f.operators, kOneProduct);
  EXPECT_EQ(f.product().s("act"), "silu");
  EXPECT_EQ(f.product().i("residual"), 1);
}

TEST(Fusion, GateTimesUp) {
  const Fused f([](const Values& v) {
    return ops::mul(ops::silu(ops::matmul(v.at("x"), v.at("w"))), ops::matmul(v.at("x"), v.at("v")));
  });
  EXPECT_EQ(f.operators, kOneProduct);
  EXPECT_EQ(f.product().s("combine"), "gate");
}

TEST(Fusion, ColumnScaleIsAPrologue) {
  const Fused f([](const Values& v) { return ops::matmul(ops::mul(v.at("x"), v.at("s")), v.at("w")); });
  EXPECT_EQ(f.operators, kOneProduct);
  EXPECT_EQ(f.product().i("norm_weight"), 1);
}

TEST(Fusion, WhatOthersReadStays) {
  // The product itself is read twice: it cannot take the activation in.
  const Fused f([](const Values& v) {
    const Value p = ops::matmul(v.at("x"), v.at("w"));
    return ops::add(ops::silu(p), ops::mul(p, 3.0));
  });
  EXPECT_EQ(f.operators, (std::vector<std::string>{"matmul", "pointwise"}));
}

TEST(Fusion, PointwiseChainsBecomeOneNode) {
  const Fused f([](const Values& v) {
    const Value a = ops::exp(ops::mul(v.at("r"), 0.5)), b = ops::add(a, v.at("b"));
    return ops::mul(ops::tanh(b), a);
  });
  EXPECT_EQ(f.operators, std::vector<std::string>{"pointwise"});
}

}  // namespace
}  // namespace hierarchos
