#include <cmath>

#include "ops/operator.h"
#include "ops/scan/linear_scan/linear_scan.h"

namespace hierarchos::ops {
namespace {

struct Problem {
  std::span<const RefTensor* const> inputs;  // the forward's
  bool uw = inputs.size() == 8;
  int64_t heads = inputs[1]->type.shape[1], keys = inputs[1]->type.shape[2], values = inputs[3]->type.shape[2];
  int64_t segments = inputs[5]->type.shape[0] - 1;
  int64_t state_size = values * keys;
  bool decay_by_channel = inputs[4]->type.shape.rank() == 3;

  double at(size_t operand, int64_t i) const { return inputs[operand]->data[static_cast<size_t>(i)]; }
  int64_t offset(int64_t b) const { return static_cast<int64_t>(at(5, b)); }
  int64_t decay_place(int64_t token_head, int64_t j) const {
    return decay_by_channel ? token_head * keys + j : token_head;
  }
  double lambda(int64_t th, int64_t j) const { return std::exp(at(4, decay_place(th, j))); }

  // S ← S·(diag λ + u wᵀ) + v kᵀ
  void step(std::vector<double>& s, int64_t th) const {
    for (int64_t i = 0; i < values; ++i) {
      double* row = &s[static_cast<size_t>(i * keys)];
      double su = 0;
      if (uw)
        for (int64_t j = 0; j < keys; ++j) su += row[j] * at(6, th * keys + j);
      for (int64_t j = 0; j < keys; ++j) {
        row[j] = row[j] * lambda(th, j) + at(3, th * values + i) * at(2, th * keys + j);
        if (uw) row[j] += su * at(7, th * keys + j);
      }
    }
  }
};

}  // namespace

void linear_scan_reference(const Attrs&, std::span<const RefTensor* const> inputs, std::span<RefTensor> outputs) {
  const Problem p{inputs};
  for (int64_t b = 0; b < p.segments; ++b)
    for (int64_t h = 0; h < p.heads; ++h) {
      const auto first = inputs[0]->data.begin() + (b * p.heads + h) * p.state_size;
      std::vector<double> s(first, first + p.state_size);
      for (int64_t t = p.offset(b); t < p.offset(b + 1); ++t) {
        const int64_t th = t * p.heads + h;
        p.step(s, th);
        for (int64_t i = 0; i < p.values; ++i)
          for (int64_t j = 0; j < p.keys; ++j)
            outputs[0].data[static_cast<size_t>(th * p.values + i)] +=
                s[static_cast<size_t>(i * p.keys + j)] * p.at(1, th * p.keys + j);
      }
      std::copy(s.begin(), s.end(), outputs[1].data.begin() + (b * p.heads + h) * p.state_size);
    }
}

void linear_scan_backward_reference(const Attrs&, std::span<const RefTensor* const> inputs,
                                    std::span<RefTensor> outputs) {
  const Problem p{inputs.subspan(2)};
  const std::vector<double>& dy = inputs[0]->data;
  std::vector<double>&dr = outputs[1].data, &dk = outputs[2].data, &dv = outputs[3].data, &ddecay = outputs[4].data;
  for (int64_t b = 0; b < p.segments; ++b)
    for (int64_t h = 0; h < p.heads; ++h) {
      const int64_t begin = p.offset(b), end = p.offset(b + 1), at_state = (b * p.heads + h) * p.state_size;
      // All states: states[n] before row begin + n.
      std::vector<std::vector<double>> states;
      states.emplace_back(p.inputs[0]->data.begin() + at_state, p.inputs[0]->data.begin() + at_state + p.state_size);
      for (int64_t t = begin; t < end; ++t) {
        states.push_back(states.back());
        p.step(states.back(), t * p.heads + h);
      }
      std::vector<double> g(inputs[1]->data.begin() + at_state, inputs[1]->data.begin() + at_state + p.state_size);
      for (int64_t t = end; t-- > begin;) {
        const int64_t th = t * p.heads + h;
        const std::vector<double>&before = states[static_cast<size_t>(t - begin)],
              &after = states[static_cast<size_t>(t - begin + 1)];
        for (int64_t i = 0; i < p.values; ++i) {
          const double dyi = dy[static_cast<size_t>(th * p.values + i)];
          double su = 0, gw = 0;
          for (int64_t j = 0; j < p.keys; ++j) {
            const auto ij = static_cast<size_t>(i * p.keys + j), j_ = static_cast<size_t>(th * p.keys + j);
            dr[j_] += dyi * after[ij];
            g[ij] += dyi * p.at(1, th * p.keys + j);
            dk[j_] += g[ij] * p.at(3, th * p.values + i);
            dv[static_cast<size_t>(th * p.values + i)] += g[ij] * p.at(2, th * p.keys + j);
            ddecay[static_cast<size_t>(p.decay_place(th, j))] += g[ij] * before[ij] * p.lambda(th, j);
            if (p.uw) {
              su += before[ij] * p.at(6, th * p.keys + j);
              gw += g[ij] * p.at(7, th * p.keys + j);
            }
          }
          for (int64_t j = 0; j < p.keys; ++j) {
            const auto ij = static_cast<size_t>(i * p.keys + j), j_ = static_cast<size_t>(th * p.keys + j);
            if (p.uw) {
              outputs[5].data[j_] += before[ij] * gw;
              outputs[6].data[j_] += g[ij] * su;
            }
            g[ij] *= p.lambda(th, j);
            if (p.uw) g[ij] += gw * p.at(6, th * p.keys + j);
          }
        }
      }
      std::copy(g.begin(), g.end(), outputs[0].data.begin() + at_state);
    }
}

}  // namespace hierarchos::ops
