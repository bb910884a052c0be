// The reference against values that PyTorch's autograd gives in float64 for the same operands.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/attention/attention/attention.h"
#include "ops/operator.h"

namespace hierarchos::ops {
void attention_reference(const Attrs&, std::span<const RefTensor* const>, std::span<RefTensor>);
void attention_backward_reference(const Attrs&, std::span<const RefTensor* const>, std::span<RefTensor>);

namespace {

RefTensor wave(Shape shape, int seed, double scale = 1) {
  RefTensor t{Type(DType::F32, shape), std::vector<double>(static_cast<size_t>(shape.elements()))};
  for (size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = scale * std::sin(0.37 * static_cast<double>(i) * 1.7 + seed * 1.3 + static_cast<double>(i % 7) * 0.21);
  return t;
}

RefTensor integers(Shape shape, std::vector<double> values) { return {Type(DType::I32, shape), std::move(values)}; }

double checksum(const RefTensor& t) {
  double sum = 0;
  for (size_t i = 0; i < t.data.size(); ++i)
    if (std::isfinite(t.data[i])) sum += t.data[i] * std::cos(0.11 * static_cast<double>(i));
  return sum;
}

struct Expected {
  double out, lse;
  std::vector<double> grads;
};

void expect(bool full, const std::string& keys, const Expected& expected) {
  std::vector<RefTensor> operands = {wave({5, 4, 3}, 1, 1.5), wave({6, 2, 3}, 2, 1.5), wave({6, 2, 2}, 3),
                                     integers({5, 2}, {0, 1, 0, 2, 1, 4, 3, 3, 0, 6})};
  Attrs attrs{{"scale", 0.6}, {"softcap", full ? 1.5 : 0.0}, {"keys", keys}};
  if (full) {
    for (const char* name : {"positions", "alibi", "bias_table", "dense_bias", "sinks"}) attrs.set(name, int64_t{1});
    operands.push_back(integers({5}, {0, 1, 3, 3, 5}));
    operands.push_back(wave({4}, 7, 0.3));
    operands.push_back(wave({4, 7}, 4, 0.8));
    operands.push_back(wave({1, 5, 6}, 5, 0.7));
    operands.push_back(wave({4}, 6, 0.5));
  }
  if (keys == "blocks") {
    attrs.set("query_block", int64_t{2}).set("key_block", int64_t{2}).set("key_list", int64_t{1});
    operands.push_back(integers({3, 2}, {0, 2, 1, -1, 2, 1}));
  } else if (keys == "indices") {
    attrs.set("key_list", int64_t{1});
    operands.push_back(integers({5, 3}, {0, 3, -1, 5, 1, 2, -1, -1, -1, 4, -1, 0, 1, 2, 3}));
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
  const std::vector<RefTensor> forward = run(attention_reference, attention_def(), operands);
  EXPECT_NEAR(checksum(forward[0]), expected.out, 1e-12);
  EXPECT_NEAR(checksum(forward[1]), expected.lse, 1e-12);
  std::vector<RefTensor> inputs = {wave({5, 4, 2}, 8), forward[0], forward[1]};
  inputs.insert(inputs.end(), operands.begin(), operands.end());
  const std::vector<RefTensor> grads = run(attention_backward_reference, attention_backward_def(), inputs);
  ASSERT_EQ(grads.size(), expected.grads.size());
  for (size_t i = 0; i < grads.size(); ++i)
    EXPECT_NEAR(checksum(grads[i]), expected.grads[i], 1e-12) << "gradient " << i;
}

TEST(AttentionReference, RangeWithEveryModifier) {
  expect(true, "range",
         {-3.808442931913317,
          7.173504520264332,
          {0.6204054137225636, 0.2245618641075096, 0.732513038099728, 0.17753447003397596, 0.38326332212988284,
           -0.24840833583039473}});
}

TEST(AttentionReference, PlainRange) {
  expect(false, "range",
         {-7.826420612532906, 2.1862124954206354, {1.1709281194500623, -0.5289068023924175, -0.4219030207054013}});
}

TEST(AttentionReference, KeyBlocks) {
  expect(true, "blocks",
         {-2.5584687618516067,
          6.888593313991167,
          {-0.28819696434681036, 0.41517974364256016, 0.7158219738633329, 0.37169571640496235, 0.5466337310454268,
           -0.7773814897820718}});
}

TEST(AttentionReference, KeyIndices) {
  expect(true, "indices",
         {-2.862563745329599,
          9.057393017810798,
          {0.4779860938139477, 1.8201333654611787, 0.12612992268208056, 0.23435762933107998, -0.31508042275197823,
           -0.9744397096321546}});
}

}  // namespace
}  // namespace hierarchos::ops
