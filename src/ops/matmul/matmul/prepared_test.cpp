// Products with prepared weights against float64 products of the decoded ones, on each instruction set of this machine.
#include "ops/matmul/matmul/prepared.h"

#include <gtest/gtest.h>

#include <hwy/highway.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "ops/index/gather/gather.h"
#include "ops/matmul/matmul/matmul.h"
#include "quant/blocks.h"
#include "quant/layout.h"
#include "runtime/session.h"

namespace hierarchos {
namespace {

HostTensor random_weight(DType dtype, Storage storage, const Shape& shape, std::mt19937& random) {
  HostTensor w(dtype, shape, storage);
  if (storage == Storage::Plain) {
    std::normal_distribution<float> normal(0, 0.05f);
    for (uint16_t& v : w.mutable_data<uint16_t>()) v = f32_to_bf16(normal(random));
    return w;
  }
  // Exponents of scales near one, so that blocks count about the same.
  for (std::byte& b : w.mutable_bytes()) b = static_cast<std::byte>(random() & 0xBB);
  return w;
}

double relative_error(const HostTensor& got, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = static_cast<double>(got.data<float>()[i]) - expected[i];
    error += e * e;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

// What 16 bits a value leave of x: an error uniform within half a unit, the unit being a 32767th of a piece's largest.
double rounding(const std::vector<float>& x) {
  double error = 0, norm = 0;
  for (size_t at = 0; at < x.size(); at += 32) {
    double largest = 0;
    for (size_t i = at; i < at + 32; ++i) {
      const auto v = static_cast<double>(x[i]);
      largest = std::max(largest, std::abs(v));
      norm += v * v;
    }
    error += 32.0 / 12 * (largest / 32767) * (largest / 32767);
  }
  return std::sqrt(error / norm);
}

struct Kind {
  DType dtype;
  Storage storage;
};
constexpr Kind kKinds[] = {{DType::BF16, Storage::Plain}, {DType::F32, Storage::Q4_0}, {DType::F32, Storage::Q4_1},
                           {DType::F32, Storage::Q5_0},   {DType::F32, Storage::Q5_1}, {DType::F32, Storage::Q8_0},
                           {DType::F32, Storage::Q4_K},   {DType::F32, Storage::Q5_K}, {DType::F32, Storage::Q6_K}};

void check(const Kind& kind, int64_t m, int64_t n, int64_t k, std::mt19937& random) {
  SCOPED_TRACE(fmt::format("{} {} m {} n {} k {}", name_of(kind.dtype), name_of(kind.storage), m, n, k));
  CpuBackend backend;
  auto graph = std::make_shared<Graph>();
  Type type(kind.dtype, Shape{n, k}, kind.storage);
  type.layout = kRows16;
  const Value w = graph->parameter("w", type), x = graph->input("x", Type(DType::F32, {m, k}));
  const Value residual = graph->input("residual", Type(DType::F32, {m, n}));
  ops::MatmulSpec spec;
  spec.x1 = x;
  spec.w1 = w;
  spec.alpha = 0.5;
  spec.residual = residual;
  graph->output("y", ops::matmul(spec));
  auto store = std::make_shared<Storehouse>(backend);
  const HostTensor weight = random_weight(kind.dtype, kind.storage, Shape{n, k}, random);
  store->get("w", type);
  store->upload("w", weight);
  Session session(Program::compile(graph, backend), store);
  std::normal_distribution<float> normal;
  std::vector<float> xs(static_cast<size_t>(m * k)), rs(static_cast<size_t>(m * n));
  for (float& v : xs) v = normal(random);
  xs[0] = 40;  // an outlier, as activations have
  for (float& v : rs) v = normal(random);
  session.set_input("x", xs);
  session.set_input("residual", rs);
  session.run();

  const std::vector<double> ws = weight.to_doubles();
  std::vector<double> expected;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < k; ++c)
        sum += static_cast<double>(xs[static_cast<size_t>(i * k + c)]) * ws[static_cast<size_t>(j * k + c)];
      expected.push_back(0.5 * sum + static_cast<double>(rs[static_cast<size_t>(i * n + j)]));
    }
  const bool exact = m <= 128 || kind.storage == Storage::Plain;
  EXPECT_LT(relative_error(session.output("y"), expected), exact ? 1e-6 : 2 * rounding(xs));
}

TEST(PreparedProduct, EveryKindOnEveryInstructionSet) {
  const int64_t targets = hwy::SupportedTargets();
  for (int64_t rest = targets; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    std::mt19937 random(11);
    for (const Kind& kind : kKinds)
      for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 48, 512}, {3, 37, 256}, {19, 100, 768}})
        check(kind, m, n, k, random);
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(PreparedProduct, ManyRowsAndColumns) {
  std::mt19937 random(12);
  for (const Kind& kind : kKinds) check(kind, 150, 96, 256, random);
  check(kKinds[2], 300, 600, 96, random);
  check(kKinds[0], 130, 70, 34, random);
  check(kKinds[5], 5, 2000, 32, random);
}

// Activations that are not finite must not become numbers.
TEST(PreparedProduct, NanStaysNan) {
  std::vector<float> x(64, 1.0f);
  x[40] = std::numeric_limits<float>::infinity();
  std::vector<std::byte> memory(static_cast<size_t>(gemm::QuantizedRows::bytes(2, 64)) + 64);
  gemm::QuantizedRows rows;
  rows.place(memory.data(), 2, 64);
  gemm::quantize_rows(x.data(), 64, 0, 1, 64, 2, Storage::Q8_0, rows);
  EXPECT_FALSE(std::isnan(rows.scales[0]));
  EXPECT_TRUE(std::isnan(rows.scales[2]));
}

TEST(PreparedTable, RowsAreTheFiles) {
  std::mt19937 random(13);
  for (const Kind& kind : kKinds) {
    CpuBackend backend;
    auto graph = std::make_shared<Graph>();
    Type type(kind.dtype, Shape{37, 256}, kind.storage);
    type.layout = kRows16;
    graph->output("rows", ops::gather(graph->parameter("w", type), graph->input("ids", Type(DType::I32, {3}))));
    auto store = std::make_shared<Storehouse>(backend);
    const HostTensor weight = random_weight(kind.dtype, kind.storage, Shape{37, 256}, random);
    store->get("w", type);
    store->upload("w", weight);
    Session session(Program::compile(graph, backend), store);
    session.set_input("ids", std::vector<int32_t>{36, 0, 17});
    session.run();
    const std::vector<double> got = session.output("rows").to_doubles(), all = weight.to_doubles();
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(got[i], all[36 * 256 + i]);
      EXPECT_EQ(got[512 + i], all[17 * 256 + i]);
    }
    EXPECT_EQ(store->download("w").to_doubles(), all);
  }
}

}  // namespace
}  // namespace hierarchos
