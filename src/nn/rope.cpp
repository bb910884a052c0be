#include "nn/rope.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "tensor/host_tensor.h"

namespace hierarchos::nn {
namespace {

std::vector<double> plain_frequencies(double theta, int64_t dim) {
  std::vector<double> inverse(static_cast<size_t>((dim + 1) / 2));
  for (size_t i = 0; i < inverse.size(); ++i)
    inverse[i] = 1.0 / std::pow(theta, 2.0 * static_cast<double>(i) / static_cast<double>(dim));
  return inverse;
}

// Peng et al. 2023: interpolate slow channels, keep fast ones, ramp between.
std::vector<double> yarn_frequencies(const RopeParams& p) {
  const double dim = static_cast<double>(p.dim);
  auto correction_dim = [&](double rotations) {
    return dim * std::log(static_cast<double>(p.original_max_positions) / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(p.theta));
  };
  double low = correction_dim(p.beta_fast), high = correction_dim(p.beta_slow);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;  // as the reference: no division by zero
  std::vector<double> inverse = plain_frequencies(p.theta, p.dim);
  for (size_t i = 0; i < inverse.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] = inverse[i] / p.factor * ramp + inverse[i] * (1 - ramp);
  }
  return inverse;
}

std::vector<double> llama3_frequencies(const RopeParams& p) {
  const double old_length = static_cast<double>(p.original_max_positions);
  std::vector<double> inverse = plain_frequencies(p.theta, p.dim);
  for (double& f : inverse) {
    const double wavelength = 2 * std::numbers::pi / f;
    if (wavelength > old_length / p.low_freq_factor) {
      f /= p.factor;
    } else if (wavelength >= old_length / p.high_freq_factor) {
      const double smooth = (old_length / wavelength - p.low_freq_factor) / (p.high_freq_factor - p.low_freq_factor);
      f = (1 - smooth) * f / p.factor + smooth * f;
    }
  }
  return inverse;
}

}  // namespace

std::vector<double> rope_inverse_frequencies(const RopeParams& p, int64_t sequence_length) {
  switch (p.kind) {
    case RopeKind::Default:
      return plain_frequencies(p.theta, p.dim);
    case RopeKind::Linear: {
      std::vector<double> inverse = plain_frequencies(p.theta, p.dim);
      for (double& f : inverse) f /= p.factor;
      return inverse;
    }
    case RopeKind::Dynamic: {
      const double length = static_cast<double>(std::max(sequence_length, p.max_positions));
      const double dim = static_cast<double>(p.dim);
      const double stretch = p.factor * length / static_cast<double>(p.max_positions) - (p.factor - 1);
      return plain_frequencies(p.theta * std::pow(stretch, dim / (dim - 2)), p.dim);
    }
    case RopeKind::Yarn:
      return yarn_frequencies(p);
    case RopeKind::Llama3:
      return llama3_frequencies(p);
    case RopeKind::LongRope: {
      const auto& factors = sequence_length > p.original_max_positions ? p.long_factor : p.short_factor;
      std::vector<double> inverse = plain_frequencies(p.theta, p.dim);
      for (size_t i = 0; i < inverse.size(); ++i) inverse[i] /= factors[i];
      return inverse;
    }
  }
  throw UserError("unknown kind of RoPE");
}

RopeTables rope_tables(Graph& graph, const std::string& name, const RopeParams& params, int64_t tokens) {
  const Type type(DType::F32, {tokens, params.pairs()});
  auto table = [params, type](bool sine) {
    return [params, type, sine](std::span<const HostTensor> inputs) {
      const auto positions = inputs[0].data<int32_t>();
      const auto segments = inputs[1].data<int32_t>();
      std::map<int32_t, int64_t> lengths;
      for (size_t t = 0; t < positions.size(); ++t) {
        int64_t& length = lengths[segments[t]];
        length = std::max<int64_t>(length, int64_t{positions[t]} + 1);
      }
      std::map<int32_t, std::vector<double>> inverse;
      for (const auto& [segment, length] : lengths) inverse[segment] = rope_inverse_frequencies(params, length);
      HostTensor out(DType::F32, type.shape);
      auto values = out.mutable_data<float>();
      const size_t half = static_cast<size_t>(params.pairs());
      for (size_t t = 0; t < positions.size(); ++t) {
        const std::vector<double>& f = inverse[segments[t]];
        for (size_t i = 0; i < half; ++i) {
          const double angle = static_cast<double>(positions[t]) * f[i];
          values[t * half + i] =
              static_cast<float>(params.attention_factor * (sine ? std::sin(angle) : std::cos(angle)));
        }
      }
      return out;
    };
  };
  return {graph.derived(name + ".cos", type, {"positions", "segments"}, table(false)),
          graph.derived(name + ".sin", type, {"positions", "segments"}, table(true))};
}

}  // namespace hierarchos::nn
