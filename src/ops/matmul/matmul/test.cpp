#include "ops/matmul/matmul/matmul.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

constexpr double kF32 = 2e-6, kBf16 = 4e-3, kF16 = 6e-4;  // f16 and bf16: the rounding of the result

double tolerance(DType dtype) { return dtype == DType::F32 ? kF32 : dtype == DType::BF16 ? kBf16 : kF16; }

std::string label(int64_t m, int64_t n, int64_t k, DType dtype) {
  return fmt::format("[{}, {}]x[{}, {}] {}", m, k, n, k, name_of(dtype));
}

OpCase plain(int64_t m, int64_t n, int64_t k, DType x, DType w) {
  OpCase c;
  c.name = label(m, n, k, x) + (w == x ? "" : fmt::format(" by {}", name_of(w)));
  c.inputs = {OpInput::normal(x, Shape{m, k}), OpInput::normal(w, Shape{n, k})};
  c.build = [](Graph&, const std::vector<Value>& v) { return std::vector<Value>{matmul(v[0], v[1])}; };
  c.tolerance = tolerance(x);
  c.grad = m * n * k <= 2000;
  return c;
}

// Which operands a case has besides the first product.
struct Parts {
  int64_t k2 = 0;  // columns of a second product
  bool row_scale = false, norm_weight = false, bias = false, bias2 = false, residual = false;
};

OpCase fused(int64_t m, int64_t n, int64_t k, DType dtype, const std::string& name, const Parts& parts,
             std::function<void(MatmulSpec&)> adjust, bool grad) {
  OpCase c;
  c.name = name + " " + label(m, n, k, dtype);
  c.inputs = {OpInput::normal(dtype, Shape{m, k}), OpInput::normal(dtype, Shape{n, k}, 0.5)};
  if (parts.k2) {
    c.inputs.push_back(OpInput::normal(dtype, Shape{m, parts.k2}));
    c.inputs.push_back(OpInput::normal(dtype, Shape{n, parts.k2}, 0.5));
  }
  if (parts.row_scale) c.inputs.push_back(OpInput::uniform(DType::F32, Shape{m}, 0.5, 1.5));
  if (parts.norm_weight) c.inputs.push_back(OpInput::normal(dtype, Shape{k}, 0.3, 1));
  if (parts.bias) c.inputs.push_back(OpInput::normal(dtype, Shape{n}));
  if (parts.bias2) c.inputs.push_back(OpInput::normal(dtype, Shape{n}));
  if (parts.residual) c.inputs.push_back(OpInput::normal(dtype, Shape{m, n}));
  c.build = [parts, adjust](Graph&, const std::vector<Value>& v) {
    MatmulSpec spec;
    size_t next = 0;
    spec.x1 = v[next++];
    spec.w1 = v[next++];
    if (parts.k2) {
      spec.x2 = v[next++];
      spec.w2 = v[next++];
    }
    if (parts.row_scale) spec.row_scale = v[next++];
    if (parts.norm_weight) spec.norm_weight = v[next++];
    if (parts.bias) spec.bias = v[next++];
    if (parts.bias2) spec.bias2 = v[next++];
    if (parts.residual) spec.residual = v[next++];
    if (adjust) adjust(spec);
    return std::vector<Value>{matmul(spec)};
  };
  c.tolerance = 2 * tolerance(dtype);
  c.grad = grad && m * n * k <= 2000;
  return c;
}

OpCase error(const std::string& name, std::vector<OpInput> inputs, const std::string& text,
             std::function<void(MatmulSpec&, const std::vector<Value>&)> adjust = nullptr) {
  OpCase c;
  c.name = name;
  c.inputs = std::move(inputs);
  c.build = [adjust](Graph&, const std::vector<Value>& v) {
    MatmulSpec spec;
    spec.x1 = v[0];
    spec.w1 = v[1];
    if (adjust) adjust(spec, v);
    return std::vector<Value>{matmul(spec)};
  };
  c.expect_error = text;
  return c;
}

}  // namespace

OP_CASES(matmul) {
  // Sizes around the register tiles, the few-rows path and the depth of a partial sum; empty ones.
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                     {1, 64, 64},
                                                                     {1, 67, 129},
                                                                     {2, 5, 31},
                                                                     {3, 130, 17},
                                                                     {5, 33, 48},
                                                                     {8, 70, 300},
                                                                     {9, 33, 65},
                                                                     {12, 32, 16},
                                                                     {13, 31, 1},
                                                                     {24, 96, 257},
                                                                     {37, 65, 512},
                                                                     {64, 64, 64},
                                                                     {200, 520, 40},
                                                                     {1, 300, 515},
                                                                     {25, 1, 33}})
      cases.push_back(plain(m, n, k, dtype, dtype));
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {20, 5, 0}, {0, 0, 0}})
    cases.push_back(plain(m, n, k, DType::F32, DType::F32));
  cases.push_back(plain(7, 33, 40, DType::F32, DType::BF16));
  cases.push_back(plain(30, 33, 40, DType::F32, DType::F16));
  cases.push_back(plain(30, 33, 40, DType::BF16, DType::F32));

  // Block-quantised weights, decoded as they are read; only whole blocks.
  for (Storage storage : {Storage::Q4_0, Storage::Q4_1, Storage::Q5_0, Storage::Q5_1, Storage::Q8_0, Storage::Q2_K,
                          Storage::Q3_K, Storage::Q4_K, Storage::Q5_K, Storage::Q6_K, Storage::IQ4_NL})
    for (const auto& [m, n, blocks] :
         std::vector<std::array<int64_t, 3>>{{1, 35, 1}, {1, 64, 10}, {3, 7, 2}, {40, 50, 9}, {20, 33, 3}}) {
      const int64_t k = blocks * block_elements(storage);
      OpCase c = plain(m, n, k, DType::F32, DType::F32);
      c.name += fmt::format(" {}", name_of(storage));
      c.inputs[1].type.storage = storage;
      c.inputs[1].constant();
      c.grad = false;
      cases.push_back(c);
    }
  {
    OpCase c = plain(3, 4, 40, DType::F32, DType::F32);
    c.name = "part of a block";
    c.inputs[1].type.storage = Storage::Q8_0;
    c.expect_error = "no multiple of the 32";
    cases.push_back(c);
  }

  // Views: transposes of either operand, slices of a wider matrix, rows of a batch.
  for (int64_t m : {1, 6, 50})
    for (DType dtype : {DType::F32, DType::BF16}) {
      OpCase c;
      c.name = fmt::format("transposed x m={} {}", m, name_of(dtype));
      c.inputs = {OpInput::normal(dtype, Shape{35, m}), OpInput::normal(dtype, Shape{21, 35})};
      c.build = [](Graph&, const std::vector<Value>& v) { return std::vector<Value>{matmul(transpose(v[0]), v[1])}; };
      c.tolerance = tolerance(dtype);
      c.grad = m == 6;
      cases.push_back(c);
      c.name = fmt::format("transposed w m={} {}", m, name_of(dtype));
      c.inputs = {OpInput::normal(dtype, Shape{m, 35}), OpInput::normal(dtype, Shape{35, 21})};
      c.build = [](Graph&, const std::vector<Value>& v) { return std::vector<Value>{matmul(v[0], transpose(v[1]))}; };
      cases.push_back(c);
      c.name = fmt::format("both transposed m={} {}", m, name_of(dtype));
      c.inputs = {OpInput::normal(dtype, Shape{300, m}), OpInput::normal(dtype, Shape{300, 41})};
      c.build = [](Graph&, const std::vector<Value>& v) {
        return std::vector<Value>{matmul(transpose(v[0]), transpose(v[1]))};
      };
      c.grad = false;
      cases.push_back(c);
      c.name = fmt::format("slices m={} {}", m, name_of(dtype));
      c.inputs = {OpInput::normal(dtype, Shape{m, 50}), OpInput::normal(dtype, Shape{40, 70})};
      c.build = [](Graph&, const std::vector<Value>& v) {
        return std::vector<Value>{matmul(slice(v[0], 1, 3, 36), slice(slice(v[1], 1, 30, 63), 0, 7, 30))};
      };
      cases.push_back(c);
    }
  for (int64_t m : {3, 20}) {
    OpCase c;
    c.name = fmt::format("batch of both m={}", m);
    c.inputs = {OpInput::normal(DType::F32, Shape{2, 3, m, 19}), OpInput::normal(DType::F32, Shape{2, 3, 11, 19})};
    c.build = [](Graph&, const std::vector<Value>& v) { return std::vector<Value>{matmul(v[0], v[1])}; };
    c.grad = m == 3;
    cases.push_back(c);
    c.name = fmt::format("batch of x m={}", m);
    c.inputs[1] = OpInput::normal(DType::F32, Shape{11, 19});
    cases.push_back(c);
    c.name = fmt::format("permuted batch m={}", m);
    c.inputs = {OpInput::normal(DType::F32, Shape{m, 4, 19}), OpInput::normal(DType::F32, Shape{11, 4, 19})};
    c.build = [](Graph&, const std::vector<Value>& v) {
      return std::vector<Value>{matmul(permute(v[0], {1, 0, 2}), permute(v[1], {1, 0, 2}))};
    };
    cases.push_back(c);
    c.name = fmt::format("permuted batch of x m={}", m);
    c.inputs[1] = OpInput::normal(DType::F32, Shape{11, 19});
    c.build = [](Graph&, const std::vector<Value>& v) {
      return std::vector<Value>{matmul(permute(v[0], {1, 0, 2}), v[1])};
    };
    cases.push_back(c);
  }

  // Prologues and epilogues, on both paths and at both precisions.
  for (int64_t m : {1, 5, 19})
    for (DType dtype : {DType::F32, DType::BF16}) {
      const int64_t n = 23, k = 12;
      cases.push_back(fused(m, n, k, dtype, "bias", {.bias = true}, nullptr, true));
      cases.push_back(fused(m, n, k, dtype, "residual", {.residual = true}, nullptr, true));
      cases.push_back(fused(
          m, n, k, dtype, "alpha", {.bias = true, .residual = true}, [](MatmulSpec& s) { s.alpha = -0.7; }, true));
      cases.push_back(fused(
          m, n, k, dtype, "two products", {.k2 = 5, .bias = true}, [](MatmulSpec& s) { s.alpha2 = 2.5; }, true));
      cases.push_back(fused(m, n, k, dtype, "two products, residual", {.k2 = 300, .residual = true}, nullptr, true));
      for (const char* act : {"silu", "gelu", "gelu_tanh", "relu", "relu2", "tanh", "sigmoid"}) {
        cases.push_back(fused(
            m, n, k, dtype, act, {.bias = true}, [act](MatmulSpec& s) { s.act = act; }, false));
        cases.push_back(fused(
            m, n, k, dtype, std::string("gate ") + act, {.k2 = k, .bias = true, .bias2 = true, .residual = true},
            [act](MatmulSpec& s) {
              s.act = act;
              s.combine = "gate";
              s.alpha2 = 0.5;
            },
            false));
      }
      cases.push_back(fused(
          m, n, k, dtype, "softcap", {.residual = true}, [](MatmulSpec& s) { s.softcap = 3; }, false));
      cases.push_back(fused(
          m, n, k, dtype, "norm", {.row_scale = true, .norm_weight = true}, [](MatmulSpec& s) { s.norm_offset = 1; },
          false));
      cases.push_back(
          fused(m, n, k, dtype, "row scale, two products", {.k2 = 7, .row_scale = true, .bias = true}, nullptr, false));
      cases.push_back(fused(m, n, 0, dtype, "nothing but bias", {.bias = true, .residual = true}, nullptr, true));
      cases.push_back(fused(
          m, n, k, dtype, "fp32 result", {}, [](MatmulSpec& s) { s.out_dtype = DType::F32; }, false));
    }

  const auto f32 = [](Shape shape) { return OpInput::normal(DType::F32, shape); };
  cases.push_back(error("columns differ", {f32({3, 4}), f32({5, 6})}, "both are K"));
  cases.push_back(error("a vector", {f32({4}), f32({5, 4})}, "matrices"));
  cases.push_back(error("batches differ", {f32({2, 3, 4}), f32({3, 5, 4})}, "batch axes"));
  cases.push_back(error("batch of w only", {f32({3, 4}), f32({2, 5, 4})}, "batch axes"));
  cases.push_back(error("integers", {OpInput::integers(Shape{3, 4}, 0, 2), f32({5, 4})}, "x1 must be f32"));
  cases.push_back(error("bias too long", {f32({3, 4}), f32({5, 4}), f32({6})}, "bias must be",
                        [](MatmulSpec& s, const std::vector<Value>& v) { s.bias = v[2]; }));
  cases.push_back(error("residual of another shape", {f32({3, 4}), f32({5, 4}), f32({5, 3})}, "residual must be",
                        [](MatmulSpec& s, const std::vector<Value>& v) { s.residual = v[2]; }));
  cases.push_back(error("gate with one product", {f32({3, 4}), f32({5, 4})}, "needs two products",
                        [](MatmulSpec& s, const std::vector<Value>&) { s.combine = "gate"; }));
  cases.push_back(error("unknown activation", {f32({3, 4}), f32({5, 4})}, "no activation",
                        [](MatmulSpec& s, const std::vector<Value>&) { s.act = "mish"; }));
  cases.push_back(error("second product of another shape", {f32({3, 4}), f32({5, 4}), f32({3, 4}), f32({6, 4})},
                        "differ in shape", [](MatmulSpec& s, const std::vector<Value>& v) {
                          s.x2 = v[2];
                          s.w2 = v[3];
                        }));

  // Halves by tiles of matrix units: whole tiles, edges in each direction, lines off their alignment, sums that are split,
  // each way that operands can lie, two products, every part of the epilogue.
  for (DType dtype : {DType::F16, DType::BF16}) {
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {128, 256, 128}, {130, 72, 104}, {257, 131, 77}, {16, 16, 16}, {40, 64, 2056}, {20, 1500, 48}, {1600, 1400, 65}})
      cases.push_back(plain(m, n, k, dtype, dtype));
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{128, 64, 192}, {90, 200, 130}, {33, 47, 61}})
      for (int which = 1; which < 4; ++which) {
        const bool x = (which & 1) != 0, w = (which & 2) != 0;
        OpCase c;
        c.name = fmt::format("{}{} {}", x ? "xT " : "", w ? "wT" : "", label(m, n, k, dtype));
        c.inputs = {OpInput::normal(dtype, x ? Shape{k, m} : Shape{m, k}), OpInput::normal(dtype, w ? Shape{k, n} : Shape{n, k})};
        c.build = [x, w](Graph&, const std::vector<Value>& v) {
          return std::vector<Value>{matmul(x ? transpose(v[0]) : v[0], w ? transpose(v[1]) : v[1])};
        };
        c.tolerance = tolerance(dtype);
        c.grad = false;
        cases.push_back(c);
      }
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{128, 128, 64}, {70, 150, 96}, {300, 36, 40}}) {
      cases.push_back(fused(m, n, k, dtype, "LoRA", {.k2 = 8}, [](MatmulSpec& s) { s.alpha2 = 1.7; }, false));
      cases.push_back(fused(m, n, k, dtype, "two products", {.k2 = 70, .bias = true, .residual = true},
                            [](MatmulSpec& s) { s.alpha = 0.6; s.act = "gelu"; }, false));
      cases.push_back(fused(m, n, k, dtype, "gate", {.k2 = k},
                            [](MatmulSpec& s) { s.combine = "gate"; s.act = "silu"; }, false));
      cases.push_back(fused(m, n, k, dtype, "gate with everything", {.k2 = k, .bias = true, .bias2 = true, .residual = true},
                            [](MatmulSpec& s) { s.combine = "gate"; s.act = "gelu_tanh"; s.alpha = 0.7; s.alpha2 = 1.2; }, false));
      OpCase same = plain(m, n, k, dtype, dtype);
      same.name = "gate of one operand " + label(m, n, k, dtype);
      same.inputs.push_back(OpInput::normal(dtype, Shape{n, k}, 0.5));
      same.build = [](Graph&, const std::vector<Value>& v) {
        return std::vector<Value>{matmul({.x1 = v[0], .w1 = v[1], .x2 = v[0], .w2 = v[2], .combine = "gate", .act = "silu"})};
      };
      same.tolerance = 2 * tolerance(dtype);
      same.grad = false;
      cases.push_back(same);
      cases.push_back(fused(m, n, k, dtype, "row scale, soft cap", {.row_scale = true, .bias = true},
                            [](MatmulSpec& s) { s.softcap = 5; s.out_dtype = DType::F32; }, false));
    }
  }

  // A 135M Llama's projections: decode, a short prompt, training rows; a LoRA's narrow products.
  for (DType dtype : {DType::F32, DType::BF16})
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1536, 576},
                                                                     {1, 49152, 576},
                                                                     {4, 1536, 576},
                                                                     {16, 1536, 576},
                                                                     {64, 1536, 576},
                                                                     {512, 1536, 576},
                                                                     {512, 576, 1536},
                                                                     {512, 8, 576},
                                                                     {512, 576, 8},
                                                                     {24, 64, 64},
                                                                     {2048, 2048, 2048}}) {
      OpCase c = plain(m, n, k, dtype, dtype);
      c.name += " perf";
      c.perf = true;
      c.grad = false;
      cases.push_back(c);
    }
  // A square product, and the projections of a 1.2B Llama (hidden 2048, MLP 8192) at 512 and 8192 tokens.
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{4096, 4096, 4096},
                                                                   {512, 3072, 2048},
                                                                   {512, 2048, 2048},
                                                                   {512, 16384, 2048},
                                                                   {512, 2048, 8192},
                                                                   {8192, 3072, 2048},
                                                                   {8192, 16384, 2048},
                                                                   {8192, 2048, 8192}}) {
    OpCase c = plain(m, n, k, DType::BF16, DType::BF16);
    c.name += " perf";
    c.perf = true;
    c.grad = false;
    cases.push_back(c);
  }
  for (Storage storage : {Storage::Q8_0, Storage::Q4_0})
    for (int64_t m : {1, 512}) {
      OpCase c = plain(m, 1536, 576, DType::F32, DType::F32);
      c.name += fmt::format(" {} perf", name_of(storage));
      c.inputs[1].type.storage = storage;
      c.perf = true;
      c.grad = false;
      cases.push_back(c);
    }
  {
    OpCase c;
    c.name = "dx [512, 1536]x[1536, 576] perf";
    c.inputs = {OpInput::normal(DType::F32, Shape{512, 1536}), OpInput::normal(DType::F32, Shape{1536, 576})};
    c.build = [](Graph&, const std::vector<Value>& v) { return std::vector<Value>{matmul(v[0], transpose(v[1]))}; };
    c.perf = true;
    c.grad = false;
    cases.push_back(c);
    c.name = "dw [512, 1536]T x[512, 576]T perf";
    c.inputs = {OpInput::normal(DType::F32, Shape{512, 1536}), OpInput::normal(DType::F32, Shape{512, 576})};
    c.build = [](Graph&, const std::vector<Value>& v) {
      return std::vector<Value>{matmul(transpose(v[0]), transpose(v[1]))};
    };
    cases.push_back(c);
  }
}

}  // namespace hierarchos::ops
