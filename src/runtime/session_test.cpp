#include "runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "ops/index/scatter_rows/scatter_rows.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/views/views.h"

namespace hierarchos {
namespace {

std::unique_ptr<Session> session(std::shared_ptr<Graph> graph, CpuBackend& backend) {
  auto store = std::make_shared<Storehouse>(backend);
  return std::make_unique<Session>(Program::compile(std::move(graph), backend), store);
}

std::vector<float> floats(const HostTensor& t) { return {t.data<float>().begin(), t.data<float>().end()}; }

TEST(Session, ScanCarriesAlternateAndSequencesStack) {
  CpuBackend backend;
  for (int64_t trip : {0, 1, 2, 5}) {
    auto graph = std::make_shared<Graph>();
    Graph& g = *graph;
    const Value x = g.input("x", Type(DType::F32, {trip, 2}));
    const Value start = g.input("start", Type(DType::F32, {2}));
    for (bool reverse : {false, true}) {
      auto out = g.scan(reverse ? "back" : "forth", trip, {start}, {x}, [&](std::span<const Value> in) -> std::vector<Value> {
        const Value next = ops::add(ops::mul(in[0], 2.0), in[1]);
        return {next, in[0]};
      }, reverse);
      g.output(reverse ? "last_back" : "last", out[0]);
      g.output(reverse ? "seen_back" : "seen", out[1]);
    }
    auto s = session(graph, backend);
    std::vector<float> xs;
    for (int i = 0; i < 2 * trip; ++i) xs.push_back(static_cast<float>(i + 1));
    s->set_input("x", xs);
    s->set_input("start", std::vector<float>{1, -1});
    s->run();
    for (bool reverse : {false, true}) {
      float a = 1, b = -1;
      std::vector<float> seen(static_cast<size_t>(2 * trip));
      for (int64_t i = 0; i < trip; ++i) {
        const auto t = static_cast<size_t>(reverse ? trip - 1 - i : i);
        seen[2 * t] = a;
        seen[2 * t + 1] = b;
        a = 2 * a + xs[2 * t];
        b = 2 * b + xs[2 * t + 1];
      }
      EXPECT_EQ(floats(s->output(reverse ? "last_back" : "last")), (std::vector<float>{a, b})) << trip;
      EXPECT_EQ(floats(s->output(reverse ? "seen_back" : "seen")), seen) << trip;
    }
    EXPECT_EQ(s->run_checked(), "");
  }
}

TEST(Session, StatesPersistAndUpdatesHappenInPlace) {
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  Graph& g = *graph;
  const Value cache = g.state("cache", Type(DType::F32, {4, 2}));
  const Value counter = g.state("counter", Type(DType::F32, {1}));
  const Value rows = g.input("rows", Type(DType::F32, {1, 2}));
  const Value slots = g.input("slots", Type(DType::I32, {1}));
  auto out = g.call("layer", {cache, rows, slots}, [&](std::span<const Value> in) -> std::vector<Value> {
    const Value next = ops::scatter_rows(in[0], in[1], in[2]);
    return {next, ops::sum(next, 0, 2)};
  });
  g.update(cache, out[0]);
  g.update(counter, ops::add(counter, 1.0));
  g.output("sum", out[1]);
  g.output("count", counter);
  EXPECT_THROW(Program::compile(graph, backend), UserError);  // the old count is read after its update

  auto again = std::make_shared<Graph>();
  Graph& h = *again;
  const Value cache2 = h.state("cache", Type(DType::F32, {4, 2}));
  const Value counter2 = h.state("counter", Type(DType::F32, {1}));
  const Value rows2 = h.input("rows", Type(DType::F32, {1, 2}));
  const Value slots2 = h.input("slots", Type(DType::I32, {1}));
  auto out2 = h.call("layer", {cache2, rows2, slots2}, [&](std::span<const Value> in) -> std::vector<Value> {
    const Value next = ops::scatter_rows(in[0], in[1], in[2]);
    return {next, ops::sum(next, 0, 2)};
  });
  h.update(cache2, out2[0]);
  const Value bumped = ops::add(counter2, 1.0);
  h.update(counter2, bumped);
  h.output("sum", out2[1]);
  h.output("count", bumped);
  auto s = session(again, backend);
  for (int i = 0; i < 3; ++i) {
    s->set_input("rows", std::vector<float>{static_cast<float>(i), 10});
    s->set_input("slots", std::vector<int32_t>{i});
    s->run();
  }
  EXPECT_EQ(floats(s->output("sum")), std::vector<float>{33});
  EXPECT_EQ(floats(s->output("count")), std::vector<float>{3});
  EXPECT_EQ(floats(s->store().download("cache")), (std::vector<float>{0, 10, 1, 10, 2, 10, 0, 0}));
  s->reset();
  s->run();
  EXPECT_EQ(floats(s->output("sum")), std::vector<float>{12});
}

TEST(Session, PredicateSkipsItsBody) {
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  Graph& g = *graph;
  const Value flag = g.input("flag", Type(DType::I32, {}));
  const Value x = g.state("x", Type(DType::F32, {3}));
  const Value step = g.input("step", Type(DType::F32, {3}));
  auto out = g.predicate("maybe", flag, {x}, [&](std::span<const Value>) -> std::vector<Value> { return {ops::add(x, step)}; });
  g.update(x, out[0]);
  g.output("y", ops::mul(out[0], 1.0));
  auto s = session(graph, backend);
  s->set_input("step", std::vector<float>{1, 2, 3});
  for (int32_t f : {1, 0, 1, 0}) {
    s->set_input("flag", std::vector<int32_t>{f});
    s->run();
  }
  EXPECT_EQ(floats(s->output("y")), (std::vector<float>{2, 4, 6}));
}

TEST(Session, StridedViewsAndSharedMemoryOfResults) {
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  Graph& g = *graph;
  const Value x = g.input("x", Type(DType::F32, {2, 3}));
  const Value t = ops::transpose(x);
  g.output("t", t);
  g.output("again", t);
  g.output("flat", ops::reshape(t, {6}));
  g.output("row", ops::slice(x, 0, 1, 2));
  g.output("same", x);
  auto s = session(graph, backend);
  s->set_input("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  s->run();
  const std::vector<float> transposed = {1, 4, 2, 5, 3, 6};
  EXPECT_EQ(floats(s->output("t")), transposed);
  EXPECT_EQ(floats(s->output("again")), transposed);
  EXPECT_EQ(floats(s->output("flat")), transposed);
  EXPECT_EQ(floats(s->output("row")), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(floats(s->output("same")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Session, HostStepsStandBetweenSegments) {
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  Graph& g = *graph;
  const Value x = g.input("x", Type(DType::F32, {3}));
  const Value doubled = ops::mul(x, 2.0);
  const Value sorted = g.host_step("sort", {doubled}, {Type(DType::F32, {3})}, [](std::span<const HostTensor> in) -> std::vector<HostTensor> {
    HostTensor out(DType::F32, {3});
    std::copy(in[0].data<float>().begin(), in[0].data<float>().end(), out.mutable_data<float>().begin());
    std::sort(out.mutable_data<float>().begin(), out.mutable_data<float>().end());
    return {out};
  })[0];
  g.output("y", ops::add(sorted, doubled));
  auto s = session(graph, backend);
  s->set_input("x", std::vector<float>{3, 1, 2});
  s->run();
  EXPECT_EQ(floats(s->output("y")), (std::vector<float>{8, 6, 10}));
  EXPECT_EQ(s->run_checked(), "");
}

TEST(Session, RunsNeedTheirInputs) {
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  graph->output("y", ops::mul(graph->input("x", Type(DType::F32, {2})), 2.0));
  auto s = session(graph, backend);
  EXPECT_THROW(s->run(), UserError);
  EXPECT_THROW(s->set_input("x", std::vector<float>{1}), UserError);
  EXPECT_THROW(s->set_input("z", std::vector<float>{1, 2}), UserError);
}

}  // namespace
}  // namespace hierarchos
