#include <cmath>

#include "ops/loss/cross_entropy/cross_entropy.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

std::vector<double> labels_for(int64_t rows, int64_t classes) {
  std::vector<double> labels;
  for (int64_t t = 0; t < rows; ++t) labels.push_back(t % 5 == 3 ? -100 : static_cast<double>((t * 7919 + 3) % classes));
  return labels;
}

OpCase make(int64_t rows, int64_t classes, DType dtype, double scale = 3, double shift = 0) {
  OpCase c;
  c.name = fmt::format("[{}, {}] {} scale {} shift {}", rows, classes, name_of(dtype), scale, shift);
  c.inputs = {OpInput::normal(dtype, Shape{rows, classes}, scale, shift),
              OpInput::given(DType::I32, Shape{rows}, labels_for(rows, classes))};
  c.build = [](Graph&, const std::vector<Value>& in) {
    const auto r = cross_entropy(in[0], in[1]);
    return std::vector<Value>{r.loss, r.lse};
  };
  c.tolerance = 3e-7;
  c.grad = rows * classes <= 3000;
  return c;
}

}  // namespace

OP_CASES(cross_entropy) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    for (auto [rows, classes] : {std::pair<int64_t, int64_t>{1, 1}, {4, 7}, {6, 65}, {9, 257}, {2, 5000}, {3, 50257}})
      cases.push_back(make(rows, classes, dtype));
    cases.push_back(make(0, 9, dtype));
  }
  cases.push_back(make(6, 40, DType::F32, 100));       // one class takes all
  for (double shift : {5000, -5000}) {  // exp would overflow
    cases.push_back(make(6, 40, DType::F32, 1, shift));
    cases.back().grad = false;  // differences of so large sums say little
  }
  {
    OpCase c = make(7, 30, DType::F32);
    c.name = "nothing is scored";
    c.inputs[1] = OpInput::given(DType::I32, Shape{7}, std::vector<double>(7, -100));
    cases.push_back(std::move(c));
  }
  const auto refused = [&](const std::string& name, OpInput logits, OpInput labels, const std::string& error) {
    OpCase c = make(3, 8, DType::F32);
    c.name = "refuses " + name;
    c.inputs = {std::move(logits), std::move(labels)};
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("logits with three axes", OpInput::normal(DType::F32, Shape{2, 3, 8}), OpInput::integers(Shape{3}, 0, 8), "[T, V]");
  refused("fewer labels than rows", OpInput::normal(DType::F32, Shape{3, 8}), OpInput::integers(Shape{2}, 0, 8), "labels must be i32[3]");
  refused("no classes", OpInput::normal(DType::F32, Shape{3, 0}), OpInput::integers(Shape{3}, 0, 8), "no classes");
  for (DType dtype : {DType::F32, DType::BF16}) {
    OpCase c = make(512, 49152, dtype);
    c.name = "perf " + c.name;
    c.perf = true;
    cases.push_back(std::move(c));
  }
}

OP_CASES(cross_entropy_backward) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    for (auto [rows, classes] : {std::pair<int64_t, int64_t>{1, 1}, {0, 5}, {4, 7}, {9, 257}, {3, 50257}}) {
      OpCase c;
      c.name = fmt::format("[{}, {}] {}", rows, classes, name_of(dtype));
      c.inputs = {OpInput::normal(DType::F32, Shape{rows}), OpInput::normal(dtype, Shape{rows, classes}, 2),
                  OpInput::given(DType::I32, Shape{rows}, labels_for(rows, classes)),
                  OpInput::normal(DType::F32, Shape{rows}, 0.1, std::log(static_cast<double>(classes)) + 2)};
      c.build = [](Graph& g, const std::vector<Value>& in) {
        return std::vector<Value>{g.emit1(cross_entropy_backward_def(), in)};
      };
      c.tolerance = 5e-7;
      c.grad = false;
      cases.push_back(std::move(c));
    }
  OpCase c;
  c.name = "perf [512, 49152] f32";
  c.inputs = {OpInput::normal(DType::F32, Shape{512}), OpInput::normal(DType::F32, Shape{512, 49152}),
              OpInput::integers(Shape{512}, 0, 49152), OpInput::normal(DType::F32, Shape{512}, 0.1, 11)};
  c.build = [](Graph& g, const std::vector<Value>& in) { return std::vector<Value>{g.emit1(cross_entropy_backward_def(), in)}; };
  c.perf = true;
  cases.push_back(std::move(c));
}

}  // namespace hierarchos::ops
