#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/attention/attention.h"
#include "ops/operator.h"

namespace hierarchos::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The forward's operands and what they mean.
struct Problem {
  const Attrs& attrs;
  std::span<const RefTensor* const> inputs;
  AttentionOperands at = attention_operands(attrs);
  int64_t tokens = inputs[0]->type.shape[0], heads = inputs[0]->type.shape[1], d = inputs[0]->type.shape[2];
  int64_t rows = inputs[1]->type.shape[0], kv_heads = inputs[1]->type.shape[1], dv = inputs[2]->type.shape[2];
  int64_t group = heads / kv_heads;
  double scale = attrs.f_or("scale", 1), softcap = attrs.f_or("softcap", 0);

  double value(int operand, int64_t i) const {
    return inputs[static_cast<size_t>(operand)]->data[static_cast<size_t>(i)];
  }
  int64_t integer(int operand, int64_t i) const { return static_cast<int64_t>(value(operand, i)); }
  const Shape& shape(int operand) const { return inputs[static_cast<size_t>(operand)]->type.shape; }

  std::vector<int64_t> keys_of(int64_t t) const {
    std::vector<int64_t> keys;
    const int64_t begin = integer(at.ranges, 2 * t), end = integer(at.ranges, 2 * t + 1);
    const std::string& mode = attrs.s("keys");
    if (mode == "range") {
      for (int64_t j = begin; j < end; ++j) keys.push_back(j);
      return keys;
    }
    const int64_t n = shape(at.key_list)[1];
    if (mode == "indices") {
      for (int64_t i = 0; i < n; ++i)
        if (const int64_t j = integer(at.key_list, t * n + i); j >= 0) keys.push_back(j);
      return keys;
    }
    const int64_t row = t / attrs.i("query_block"), size = attrs.i("key_block");
    for (int64_t i = 0; i < n; ++i) {
      const int64_t block = integer(at.key_list, row * n + i);
      if (block < 0) continue;
      for (int64_t j = std::max(begin, block * size); j < std::min(end, (block + 1) * size); ++j) keys.push_back(j);
    }
    return keys;
  }

  int64_t row_of(int64_t t, int64_t key) const {
    if (at.block_table < 0) return key;
    const int64_t page = attrs.i("page"), blocks = shape(at.block_table)[1];
    return integer(at.block_table, integer(at.segment, t) * blocks + key / page) * page + key % page;
  }

  int64_t bias_bucket(int64_t t, int64_t key) const {
    const int64_t n = shape(at.bias_table)[1];
    return std::clamp<int64_t>(key - integer(at.positions, t) + n / 2, 0, n - 1);
  }
  int64_t bias_table_place(int64_t t, int64_t h, int64_t key) const {
    return (shape(at.bias_table)[0] == 1 ? 0 : h) * shape(at.bias_table)[1] + bias_bucket(t, key);
  }
  int64_t dense_bias_place(int64_t t, int64_t h, int64_t key) const {
    return ((shape(at.dense_bias)[0] == 1 ? 0 : h) * tokens + t) * shape(at.dense_bias)[2] + key;
  }

  double dot(int64_t t, int64_t h, int64_t row) const {
    double sum = 0;
    for (int64_t i = 0; i < d; ++i)
      sum += value(at.q, (t * heads + h) * d + i) * value(at.k, (row * kv_heads + h / group) * d + i);
    return sum;
  }
  // The score of one pair, and its derivative with respect to the dot product.
  double score(int64_t t, int64_t h, int64_t key, double* slope = nullptr) const {
    double s = scale * dot(t, h, row_of(t, key));
    double derivative = scale;
    if (softcap != 0) {
      const double bent = std::tanh(s / softcap);
      s = softcap * bent;
      derivative *= 1 - bent * bent;
    }
    if (at.alibi >= 0) s += value(at.alibi, h) * static_cast<double>(key - integer(at.positions, t));
    if (at.bias_table >= 0) s += value(at.bias_table, bias_table_place(t, h, key));
    if (at.dense_bias >= 0) s += value(at.dense_bias, dense_bias_place(t, h, key));
    if (slope) *slope = derivative;
    return s;
  }
};

}  // namespace

void attention_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const Problem p{attrs, inputs};
  for (int64_t t = 0; t < p.tokens; ++t) {
    const std::vector<int64_t> keys = p.keys_of(t);
    for (int64_t h = 0; h < p.heads; ++h) {
      std::vector<double> scores;
      double highest = p.at.sinks >= 0 ? p.value(p.at.sinks, h) : -kInf;
      for (int64_t key : keys) {
        scores.push_back(p.score(t, h, key));
        highest = std::max(highest, scores.back());
      }
      double* lse = &outputs[1].data[static_cast<size_t>(t * p.heads + h)];
      *lse = -kInf;
      if (highest == -kInf) continue;
      double total = p.at.sinks >= 0 ? std::exp(p.value(p.at.sinks, h) - highest) : 0;
      for (double s : scores) total += std::exp(s - highest);
      *lse = highest + std::log(total);
      for (size_t i = 0; i < keys.size(); ++i) {
        const double weight = std::exp(scores[i] - highest) / total;
        const int64_t row = p.row_of(t, keys[i]) * p.kv_heads + h / p.group;
        for (int64_t c = 0; c < p.dv; ++c)
          outputs[0].data[static_cast<size_t>((t * p.heads + h) * p.dv + c)] +=
              weight * p.value(p.at.v, row * p.dv + c);
      }
    }
  }
}

void attention_backward_reference(const Attrs& attrs, std::span<const RefTensor* const> inputs,
                                  std::span<RefTensor> outputs) {
  const Problem p{attrs, inputs.subspan(3)};
  const std::vector<double>&dout = inputs[0]->data, &out = inputs[1]->data, &lse = inputs[2]->data;
  std::vector<double>&dq = outputs[0].data, &dk = outputs[1].data, &dv = outputs[2].data;
  size_t next = 3;
  std::vector<double>* dbias_table = p.at.bias_table >= 0 ? &outputs[next++].data : nullptr;
  std::vector<double>* ddense_bias = p.at.dense_bias >= 0 ? &outputs[next++].data : nullptr;
  std::vector<double>* dsinks = p.at.sinks >= 0 ? &outputs[next++].data : nullptr;
  for (int64_t t = 0; t < p.tokens; ++t) {
    const std::vector<int64_t> keys = p.keys_of(t);
    for (int64_t h = 0; h < p.heads; ++h) {
      const int64_t query = t * p.heads + h;
      const double total = lse[static_cast<size_t>(query)];
      if (total == -kInf) continue;
      double delta = 0;
      for (int64_t c = 0; c < p.dv; ++c)
        delta += dout[static_cast<size_t>(query * p.dv + c)] * out[static_cast<size_t>(query * p.dv + c)];
      if (dsinks) (*dsinks)[static_cast<size_t>(h)] -= std::exp(p.value(p.at.sinks, h) - total) * delta;
      for (int64_t key : keys) {
        double slope;
        const double weight = std::exp(p.score(t, h, key, &slope) - total);
        const int64_t row = key * p.kv_heads + h / p.group;
        double dweight = 0;
        for (int64_t c = 0; c < p.dv; ++c) {
          const double g = dout[static_cast<size_t>(query * p.dv + c)];
          dweight += g * p.value(p.at.v, row * p.dv + c);
          dv[static_cast<size_t>(row * p.dv + c)] += weight * g;
        }
        const double dscore = weight * (dweight - delta);
        if (dbias_table) (*dbias_table)[static_cast<size_t>(p.bias_table_place(t, h, key))] += dscore;
        if (ddense_bias) (*ddense_bias)[static_cast<size_t>(p.dense_bias_place(t, h, key))] += dscore;
        for (int64_t i = 0; i < p.d; ++i) {
          dq[static_cast<size_t>(query * p.d + i)] += dscore * slope * p.value(p.at.k, row * p.d + i);
          dk[static_cast<size_t>(row * p.d + i)] += dscore * slope * p.value(p.at.q, query * p.d + i);
        }
      }
    }
  }
}

}  // namespace hierarchos::ops
