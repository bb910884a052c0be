#include <numeric>

#include "ops/moe/grouped_matmul/grouped_matmul.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

struct Sizes {
  int64_t n, k, tile, experts;
  std::vector<double> tiles;  // expert of each
};

OpInput tile_experts(const Sizes& s) {
  return OpInput::given(DType::I32, Shape{static_cast<int64_t>(s.tiles.size())}, s.tiles);
}

std::string text(const Sizes& s) {
  return fmt::format("{} tiles of {} n={} k={} experts={}", s.tiles.size(), s.tile, s.n, s.k, s.experts);
}

OpCase forward(const Sizes& s, DType x, DType w, bool transposed, Storage storage = Storage::Plain) {
  OpCase c;
  c.name = fmt::format("{} {}·{}{}", text(s), name_of(x), storage == Storage::Plain ? name_of(w) : name_of(storage),
                       transposed ? " transposed" : "");
  OpInput weights = OpInput::normal(w, transposed ? Shape{s.experts * s.k, s.n} : Shape{s.experts * s.n, s.k});
  weights.type.storage = storage;
  c.inputs = {OpInput::normal(x, Shape{static_cast<int64_t>(s.tiles.size()) * s.tile, s.k}), weights, tile_experts(s)};
  c.build = [s, transposed](Graph&, const std::vector<Value>& in) {
    return std::vector<Value>{grouped_matmul({in[0], in[1], in[2], s.tile, s.experts, transposed})};
  };
  c.grad = c.inputs[0].type.shape.elements() + weights.type.shape.elements() < 600 && x == DType::F32 &&
           storage == Storage::Plain;
  return c;
}

OpCase backward(const Sizes& s, DType dtype) {
  OpCase c;
  c.name = fmt::format("{} {}", text(s), name_of(dtype));
  const int64_t rows = static_cast<int64_t>(s.tiles.size()) * s.tile;
  c.inputs = {OpInput::normal(dtype, Shape{rows, s.n}), OpInput::normal(dtype, Shape{rows, s.k}), tile_experts(s)};
  c.build = [s](Graph& graph, const std::vector<Value>& in) {
    return std::vector<Value>{
        graph.emit1(grouped_matmul_backward_def(), {in[0], in[1], in[2]}, {{"tile", s.tile}, {"experts", s.experts}})};
  };
  c.grad = false;
  return c;
}

const Sizes kSmall = {3, 5, 2, 3, {0, 0, 2, -1}}, kDecode = {37, 70, 1, 4, {1, 3, -1, -1, -1}},
            kOdd = {67, 45, 16, 3, {0, 1, 1, 2, -1}}, kWide = {129, 200, 64, 2, {0, 0, 1, -1}},
            kFew = {33, 64, 8, 4, {0, 2, 3, 3, -1, -1}}, kDeep = {8, 700, 4, 2, {0, 1, 1}},
            kEmpty = {4, 4, 2, 2, {-1, -1}};

}  // namespace

OP_CASES(grouped_matmul) {
  for (const Sizes& s : {kSmall, kDecode, kOdd, kWide, kFew, kDeep, kEmpty})
    for (bool transposed : {false, true}) cases.push_back(forward(s, DType::F32, DType::F32, transposed));
  for (DType dtype : {DType::BF16, DType::F16})
    for (const Sizes& s : {kDecode, kOdd})
      for (bool transposed : {false, true}) cases.push_back(forward(s, dtype, dtype, transposed));
  cases.push_back(forward(kOdd, DType::F32, DType::BF16, false));
  // Blocks, by rows and by tiles.
  for (Storage storage : {Storage::Q4_0, Storage::Q8_0}) {
    cases.push_back(forward({40, 64, 1, 3, {2, 0, -1}}, DType::F32, DType::F32, false, storage));
    cases.push_back(forward({40, 96, 16, 3, {0, 2, 2, -1}}, DType::F32, DType::F32, false, storage));
  }
  const auto refused = [&](const std::string& name, size_t input, OpInput instead, const std::string& error) {
    OpCase c = forward(kSmall, DType::F32, DType::F32, false);
    c.name = "refuses " + name;
    c.inputs[input] = std::move(instead);
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("rows that are no whole tiles", 0, OpInput::normal(DType::F32, Shape{7, 5}), "7 rows in tiles of 2");
  refused("another depth", 0, OpInput::normal(DType::F32, Shape{8, 6}), "x has K = 6, w has 5");
  refused("matrices that do not divide", 1, OpInput::normal(DType::F32, Shape{10, 5}), "10 rows for 3 experts");
  refused("too few tiles", 2, OpInput::integers(Shape{3}, 0, 3), "tile_expert must be i32[4]");
  std::vector<double> tiles(64);
  for (size_t i = 0; i < tiles.size(); ++i) tiles[i] = static_cast<double>(i / 8);
  OpCase perf = forward({1024, 1024, 32, 8, tiles}, DType::F32, DType::F32, false);
  perf.perf = true;
  cases.push_back(perf);
}

OP_CASES(grouped_matmul_backward) {
  for (const Sizes& s : {kSmall, kDecode, kOdd, kWide, kFew, kDeep, kEmpty}) cases.push_back(backward(s, DType::F32));
  for (DType dtype : {DType::BF16, DType::F16}) cases.push_back(backward(kOdd, dtype));
  // More rows than one sum takes.
  cases.push_back(backward({20, 30, 64, 2, {0, 0, 0, 0, 0, 0, 1, -1}}, DType::F32));
}

}  // namespace hierarchos::ops
