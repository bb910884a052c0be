#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "backend/vulkan/vulkan_backend.h"
#include "ops/operator.h"
#include "ops/pointwise/pointwise.h"

namespace hierarchos {
namespace ops {
std::unique_ptr<Kernel> pointwise_vulkan(VulkanBackend& backend, const KernelRequest& request);
}
namespace {

VulkanBackend* device() {
  static const auto backend = []() -> std::unique_ptr<VulkanBackend> {
    for (const auto& d : enumerate_vulkan_devices())
      if (d.usable) {
        VulkanOptions options;
        options.device = d.index;
        options.cache_folder = "-";
        return create_vulkan_backend(options);
      }
    return nullptr;
  }();
  return backend.get();
}

// Runs an expression over fp32 vectors on the device.
std::vector<std::vector<float>> run(const std::string& text, const std::vector<std::vector<float>>& inputs, size_t results,
                                    std::vector<Shape> shapes = {}, Shape out = {}) {
  VulkanBackend& backend = *device();
  KernelRequest request;
  request.op = &ops::pointwise_def();
  request.attrs = Attrs{{"expr", text}};
  if (shapes.empty())
    for (const auto& i : inputs) shapes.push_back({static_cast<int64_t>(i.size())});
  if (out.rank() == 0 && !inputs.empty()) out = shapes[0];
  for (const Shape& s : shapes) request.inputs.push_back(TensorDesc::contiguous(Type(DType::F32, s)));
  for (size_t o = 0; o < results; ++o) request.outputs.push_back(TensorDesc::contiguous(Type(DType::F32, out)));
  const auto kernel = ops::pointwise_vulkan(backend, request);
  std::vector<std::unique_ptr<Buffer>> buffers;
  BoundProgram program;
  for (const auto& i : inputs) {
    buffers.push_back(backend.allocate(static_cast<int64_t>(i.size() * 4), "input"));
    backend.upload(buffers.back()->address(), std::as_bytes(std::span(i)));
    program.operands.push_back(buffers.back()->address());
  }
  const auto n = static_cast<size_t>(out.elements());
  for (size_t o = 0; o < results; ++o) {
    buffers.push_back(backend.allocate(static_cast<int64_t>(n * 4), "result"));
    program.operands.push_back(buffers.back()->address());
  }
  program.labels = {text};
  program.steps.resize(1);
  program.steps[0] = {kernel.get(), 0, static_cast<uint16_t>(inputs.size()), static_cast<uint16_t>(results),
                      static_cast<uint16_t>(program.operands.size()), false, false, -1, 0};
  const auto recording = backend.record(program);
  backend.run(*recording);
  backend.wait();
  std::vector<std::vector<float>> values(results, std::vector<float>(n));
  for (size_t o = 0; o < results; ++o)
    backend.download(program.operands[inputs.size() + o], std::as_writable_bytes(std::span(values[o])));
  return values;
}

// Distance in units of the last place of the expected value.
double ulps(float got, double expected) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : 1e9;
  const float rounded = static_cast<float>(expected);
  if (got == rounded) return 0;
  if (std::isinf(rounded) || std::isinf(got) || std::isnan(got)) return 1e9;
  const double unit = std::max(std::ldexp(1.0, std::ilogb(rounded == 0 ? 1e-38f : rounded) - 23), std::ldexp(1.0, -126));
  return std::abs(static_cast<double>(got) - expected) / unit;
}

std::vector<float> samples() {
  std::vector<float> x = {0.f, -0.f, 1.f, -1.f, 0.5f, INFINITY, -INFINITY, NAN, 20.f, 20.5f, -20.f, 88.f, -87.f, 89.f, -104.f, 3e38f, -3e38f, 1e-30f};
  uint64_t state = 42;
  for (int i = 0; i < 4000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double u = static_cast<double>(state >> 40) / (1 << 23) - 1;
    x.push_back(static_cast<float>(i % 2 ? u * 8 : u * std::exp(u * 9)));
  }
  return x;
}

TEST(PointwiseVulkan, ElementaryFunctionsAreWithinAFewUlp) {
  if (!device()) GTEST_SKIP() << "no usable Vulkan device";
  const std::vector<float> x = samples();
  // Bounds in ulp of the result. Differences of nearly equal numbers (gelu's tail) are judged absolutely below.
  const std::pair<const char*, double> functions[] = {
      {"exp", 4}, {"log", 4}, {"sqrt", 2}, {"rsqrt", 4}, {"recip", 3}, {"tanh", 4}, {"sigmoid", 6}, {"silu", 7}, {"erf", 4},
      {"softplus", 6}, {"neg", 0}, {"abs", 0}, {"sign", 0}, {"square", 0.5}, {"relu", 0}, {"floor", 0}};
  for (const auto& [name, bound] : functions) {
    const std::string text = fmt::format("o0={}(i0)", name);
    const auto expr = PointwiseExpr::parse(text, 1);
    const auto got = run(text, {x}, 1)[0];
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double in = static_cast<double>(x[i]);
      double expected;
      evaluate(expr, &in, &expected);
      const double u = ulps(got[i], expected);
      if (u > worst) worst = u, at = i;
    }
    EXPECT_LE(worst, bound) << name << " at " << x[at] << " gives " << got[at];
  }
  for (const char* name : {"gelu", "gelu_tanh", "sin", "cos"}) {
    const std::string text = fmt::format("o0={}(i0)", name);
    const auto expr = PointwiseExpr::parse(text, 1);
    const auto got = run(text, {x}, 1)[0];
    for (size_t i = 0; i < x.size(); ++i) {
      const double in = static_cast<double>(x[i]);
      if (!std::isfinite(in) || std::abs(in) > 1000) continue;
      double expected;
      evaluate(expr, &in, &expected);
      EXPECT_NEAR(static_cast<double>(got[i]), expected, 3e-7 * std::max(1.0, std::abs(in))) << name << " at " << in;
    }
  }
}

TEST(PointwiseVulkan, TwoOperandsAndComparisons) {
  if (!device()) GTEST_SKIP() << "no usable Vulkan device";
  std::vector<float> a = samples(), b = a;
  std::rotate(b.begin(), b.begin() + 5, b.end());
  for (const char* name : {"add", "sub", "mul", "div", "min", "max"}) {
    const std::string text = fmt::format("o0={}(i0,i1)", name);
    const auto got = run(text, {a, b}, 1)[0];
    const auto expr = PointwiseExpr::parse(text, 2);
    for (size_t i = 0; i < a.size(); ++i) {
      const double in[] = {static_cast<double>(a[i]), static_cast<double>(b[i])};
      double expected;
      evaluate(expr, in, &expected);
      // Vulkan promises divisions for denominators up to 2¹²⁶.
      if (std::string(name) == "div" && std::isfinite(b[i]) && std::abs(b[i]) > 0x1p126f) continue;
      EXPECT_LE(ulps(got[i], expected), std::string(name) == "div" ? 3 : 0.5) << name << " " << a[i] << " " << b[i] << " gives " << got[i];
    }
  }
  for (const char* name : {"lt", "le", "eq", "ne"}) {
    const std::string text = fmt::format("t0={}(i0,i1);o0=select(t0,i0,i1);t1=is_finite(i0);t2=not(t1);t3=and(t0,t2);o1=to_float(t3)", name);
    const auto got = run(text, {a, b}, 2);
    const auto expr = PointwiseExpr::parse(text, 2);
    for (size_t i = 0; i < a.size(); ++i) {
      const double in[] = {static_cast<double>(a[i]), static_cast<double>(b[i])};
      double expected[2];
      evaluate(expr, in, expected);
      EXPECT_EQ(ulps(got[0][i], expected[0]), 0) << name << " " << a[i] << " " << b[i];
      EXPECT_EQ(got[1][i], expected[1]) << name << " " << a[i] << " " << b[i];
    }
  }
}

TEST(PointwiseVulkan, BroadcastsAndManyOperands) {
  if (!device()) GTEST_SKIP() << "no usable Vulkan device";
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, row = {100, 200, 300}, column = {1000, 2000, 3000, 4000}, one = {0.5f};
  const auto got = run("t0=add(i0,i1);t1=add(t0,i2);o0=add(t1,i3)", {x, row, column, one}, 1, {{4, 3}, {3}, {4, 1}, {}}, {4, 3})[0];
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(got[i], x[i] + row[i % 3] + column[i / 3] + 0.5f);
  // More arguments than push constants hold.
  std::vector<std::vector<float>> many;
  std::vector<Shape> shapes;
  std::string text = "t0=add(i0,i1)";
  for (int i = 0; i < 16; ++i) {
    many.push_back({static_cast<float>(i), static_cast<float>(2 * i)});
    shapes.push_back({1, 2});
    if (i > 1) text += fmt::format(";{}=add(t{},i{})", i == 15 ? "o0" : fmt::format("t{}", i - 1), i - 2, i);
  }
  const auto sum = run(text, many, 1, shapes, {3, 2})[0];
  EXPECT_EQ(sum, (std::vector<float>{120, 240, 120, 240, 120, 240}));
  EXPECT_TRUE(run("o0=exp(i0)", {{}}, 1)[0].empty());
}

}  // namespace
}  // namespace hierarchos
