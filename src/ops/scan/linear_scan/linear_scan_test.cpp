// The reference against values that PyTorch's autograd gives in float64 for the same operands.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/operator.h"
#include "ops/scan/linear_scan/linear_scan.h"

namespace hierarchos::ops {
void linear_scan_reference(const Attrs&, std::span<const RefTensor* const>, std::span<RefTensor>);
void linear_scan_backward_reference(const Attrs&, std::span<const RefTensor* const>, std::span<RefTensor>);

namespace {

RefTensor wave(Shape shape, int seed, double scale = 1, double offset = 0) {
  RefTensor t{Type(DType::F32, shape), std::vector<double>(static_cast<size_t>(shape.elements()))};
  for (size_t i = 0; i < t.data.size(); ++i)
    t.data[i] =
        offset + scale * std::sin(0.37 * static_cast<double>(i) * 1.7 + seed * 1.3 + static_cast<double>(i % 7) * 0.21);
  return t;
}

double checksum(const RefTensor& t) {
  double sum = 0;
  for (size_t i = 0; i < t.data.size(); ++i) sum += t.data[i] * std::cos(0.11 * static_cast<double>(i));
  return sum;
}

void expect(bool uw, bool by_channel, double y, double state, const std::vector<double>& expected) {
  const Shape row{7, 2, 3};
  std::vector<RefTensor> operands = {wave({3, 2, 4, 3}, 1, 0.5),
                                     wave(row, 2),
                                     wave(row, 3),
                                     wave({7, 2, 4}, 4),
                                     wave(by_channel ? row : Shape{7, 2}, 5, 0.4, -0.5),
                                     {Type(DType::I32, Shape{4}), {0, 4, 4, 7}}};
  Attrs attrs;
  if (uw) {
    attrs.set("uw", int64_t{1});
    operands.push_back(wave(row, 6, 0.6));
    operands.push_back(wave(row, 7, 0.6));
  }
  const auto run = [&](auto reference, const OpDef& def, const std::vector<RefTensor>& inputs) {
    std::vector<const RefTensor*> pointers;
    std::vector<Type> types;
    for (const RefTensor& t : inputs) pointers.push_back(&t), types.push_back(t.type);
    std::vector<RefTensor> outputs;
    for (const Type& type : def.infer({attrs, types}))
      outputs.push_back({type, std::vector<double>(static_cast<size_t>(type.shape.elements()))});
    reference(attrs, pointers, outputs);
    return outputs;
  };
  const std::vector<RefTensor> forward = run(linear_scan_reference, linear_scan_def(), operands);
  EXPECT_NEAR(checksum(forward[0]), y, 1e-12);
  EXPECT_NEAR(checksum(forward[1]), state, 1e-12);
  std::vector<RefTensor> inputs = {wave({7, 2, 4}, 8), wave({3, 2, 4, 3}, 9)};
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  const std::vector<RefTensor> grads = run(linear_scan_backward_reference, linear_scan_backward_def(), inputs);
  ASSERT_EQ(grads.size(), expected.size());
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_NEAR(checksum(grads[i]), expected[i], 1e-12) << "gradient " << i;
}

TEST(LinearScanReference, LowRankTransitionAndChannelDecay) {
  expect(true, true, 0.20114538185181374, -9.11388839706,
         {3.068572394356494, -1.41888364591563, -6.085463065087423, -3.3263593734281143, 1.2273260238699466,
          8.389657463670906, -0.04097670662282831});
}

TEST(LinearScanReference, DecayOfAHead) {
  expect(false, false, -0.08578011992635348, -6.118432894372258,
         {0.0036132270730329097, -1.3105156724084006, -6.656423019305077, -0.3206763322642041, -3.6843919971996226});
}

}  // namespace
}  // namespace hierarchos::ops
