// A small mixture of experts written with the operators, against the same sums written out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "ops/collective/all_reduce/all_reduce.h"
#include "ops/index/gather/gather.h"
#include "ops/moe/expert_rows/expert_rows.h"
#include "ops/moe/grouped_matmul/grouped_matmul.h"
#include "ops/moe/top_k/top_k.h"
#include "ops/pointwise/pointwise.h"
#include "ops/quantized/dequantize/dequantize.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/scan/selective_scan/selective_scan.h"
#include "passes/autodiff.h"
#include "quant/blocks.h"
#include "runtime/interpreter.h"
#include "runtime/session.h"

namespace hierarchos {
namespace {

RefTensor waves(DType dtype, Shape shape, double phase) {
  RefTensor t{Type(dtype, shape), {}};
  for (int64_t i = 0; i < shape.elements(); ++i) t.data.push_back(std::sin(phase + 1.3 * static_cast<double>(i)));
  return t;
}

TEST(Moe, RoutesSortsMultipliesAndCombines) {
  constexpr int64_t kTokens = 5, kWidth = 3, kOut = 2, kExperts = 4, kTop = 2, kTile = 2;
  Graph g;
  const Value x = g.parameter("x", Type(DType::F32, {kTokens, kWidth}));
  const Value w = g.parameter("w", Type(DType::F32, {kExperts * kOut, kWidth}));
  const Value scores = g.parameter("scores", Type(DType::F32, {kTokens, kExperts}));
  const ops::TopK top = ops::top_k(scores, kTop);
  const ops::ExpertRows rows = ops::expert_rows(top.indices, kExperts, kTile);
  const int64_t capacity = rows.token.shape()[0];
  EXPECT_EQ(capacity, kTile * ((kTokens * kTop + kTile - 1) / kTile + kExperts));
  // Gradients go through w only: look-ups need orders of their ids.
  const Value sorted = ops::gather(ops::stop_gradient(x), rows.token);
  const Value y = ops::grouped_matmul({sorted, w, rows.tile_expert, kTile, kExperts});
  g.output("y", y);
  g.output("row", rows.row);
  const Value loss = ops::sum(ops::square(y));
  g.output("loss", loss);
  const std::vector<Value> wrt = {w};
  g.output("dw", *gradients(loss, wrt)[0]);
  Interpreter run(g);
  const RefTensor xs = waves(DType::F32, {kTokens, kWidth}, 0.2), ws = waves(DType::F32, {kExperts * kOut, kWidth}, 2.2),
                  ss = waves(DType::F32, {kTokens, kExperts}, 1);
  run.set("x", xs);
  run.set("w", ws);
  run.set("scores", ss);
  run.run();

  double expected_loss = 0;
  std::vector<double> dw(ws.data.size(), 0.0);
  for (int64_t t = 0; t < kTokens; ++t) {
    std::vector<int64_t> order = {0, 1, 2, 3};
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return ss.data[static_cast<size_t>(t * kExperts + a)] > ss.data[static_cast<size_t>(t * kExperts + b)];
    });
    for (int64_t c = 0; c < kTop; ++c) {
      const int64_t e = order[static_cast<size_t>(c)];
      const auto row = static_cast<int64_t>(run.output("row").data[static_cast<size_t>(t * kTop + c)]);
      for (int64_t o = 0; o < kOut; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < kWidth; ++i)
          sum += xs.data[static_cast<size_t>(t * kWidth + i)] * ws.data[static_cast<size_t>((e * kOut + o) * kWidth + i)];
        EXPECT_NEAR(run.output("y").data[static_cast<size_t>(row * kOut + o)], sum, 1e-12);
        expected_loss += sum * sum;
        for (int64_t i = 0; i < kWidth; ++i)
          dw[static_cast<size_t>((e * kOut + o) * kWidth + i)] += 2 * sum * xs.data[static_cast<size_t>(t * kWidth + i)];
      }
    }
  }
  EXPECT_NEAR(run.output("loss").data[0], expected_loss, 1e-12);
  for (size_t i = 0; i < dw.size(); ++i) EXPECT_NEAR(run.output("dw").data[i], dw[i], 1e-12);
}

TEST(Moe, TopKPrefersLowIndicesAndNeverNan) {
  Graph g;
  const auto top = ops::top_k(g.input("x", Type(DType::F32, {1, 5})), 4);
  g.output("values", top.values);
  g.output("indices", top.indices);
  Interpreter run(g);
  run.set("x", RefTensor{Type(DType::F32, {1, 5}), {2, std::nan(""), 3, 2, -1}});
  run.run();
  EXPECT_EQ(run.output("indices").data, (std::vector<double>{2, 0, 3, 4}));
  EXPECT_EQ(run.output("values").data, (std::vector<double>{3, 2, 2, -1}));
}

TEST(SelectiveScan, TwoStepsByHand) {
  Graph g;
  const DType f = DType::F32;
  const auto r = ops::selective_scan(g.input("h", Type(f, {1, 1, 2})), g.input("x", Type(f, {2, 1})), g.input("delta", Type(f, {2, 1})),
                                     g.input("a", Type(f, {1, 2})), g.input("b", Type(f, {2, 2})), g.input("c", Type(f, {2, 2})),
                                     g.input("offsets", Type(DType::I32, {2})));
  g.output("y", r.y);
  g.output("state", r.state);
  Interpreter run(g);
  run.set("h", RefTensor{Type(f, {1, 1, 2}), {1, 2}});
  run.set("x", RefTensor{Type(f, {2, 1}), {3, -1}});
  run.set("delta", RefTensor{Type(f, {2, 1}), {0.5, 2}});
  run.set("a", RefTensor{Type(f, {1, 2}), {-1, 0}});
  run.set("b", RefTensor{Type(f, {2, 2}), {1, 2, 3, 4}});
  run.set("c", RefTensor{Type(f, {2, 2}), {1, 1, 2, 0.5}});
  run.set("offsets", RefTensor{Type(DType::I32, {2}), {0, 2}});
  run.run();
  const double h0 = std::exp(-0.5) + 1.5, h1 = 2 + 3.0;
  const double k0 = std::exp(-2.0) * h0 - 6, k1 = h1 - 8;
  EXPECT_NEAR(run.output("y").data[0], h0 + h1, 1e-14);
  EXPECT_NEAR(run.output("y").data[1], 2 * k0 + 0.5 * k1, 1e-14);
  EXPECT_NEAR(run.output("state").data[0], k0, 1e-14);
  EXPECT_NEAR(run.output("state").data[1], k1, 1e-14);
}

TEST(Terms, WhatHasNoKernelIsRefusedByName) {
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  const DType f = DType::F32;
  graph->output("y", ops::selective_scan(graph->input("h", Type(f, {1, 1, 2})), graph->input("x", Type(f, {2, 1})),
                                         graph->input("delta", Type(f, {2, 1})), graph->input("a", Type(f, {1, 2})),
                                         graph->input("b", Type(f, {2, 2})), graph->input("c", Type(f, {2, 2})),
                                         graph->input("offsets", Type(DType::I32, {2})))
                         .y);
  try {
    Program::compile(graph, backend);
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_NE(std::string(e.what()).find("selective_scan has no kernel for the CPU"), std::string::npos) << e.what();
  }
}

TEST(Terms, AllReduceOfOneDeviceAndBlocks) {
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  Graph& g = *graph;
  g.output("sum", ops::all_reduce(g.input("x", Type(DType::F32, {2, 3})), 0, 1));
  g.output("plain", ops::dequantize(g.parameter("w", Type(DType::F32, {2, 32}, Storage::Q8_0), false)));
  auto store = std::make_shared<Storehouse>(backend);
  std::vector<float> source(64);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i % 32 == 31 ? 127 : i % 32);  // a scale of 1: exact
  HostTensor blocks(DType::F32, {2, 32}, Storage::Q8_0);
  quantize(Storage::Q8_0, source, blocks.mutable_bytes());
  store->upload("w", blocks);
  Session session(Program::compile(graph, backend), store);
  session.set_input("x", std::vector<float>{1, 2, 3, 4, 5, 6});
  session.run();
  EXPECT_EQ(session.output("sum").to_doubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const HostTensor plain = session.output("plain");
  EXPECT_TRUE(std::equal(source.begin(), source.end(), plain.data<float>().begin()));
}

}  // namespace
}  // namespace hierarchos
