#include <cmath>
#include <numbers>

#include "formats/gguf_architectures.h"
#include "formats/shown.h"

namespace hierarchos::formats {
namespace {

constexpr const char* kDivisors = "rope_freqs.weight";
constexpr const char *kLong = "rope_factors_long.weight", *kShort = "rope_factors_short.weight";

// Llama 3.1's scaling of frequencies comes as one divisor a frequency, not as its settings. They are found again by
// trying what all published models have, with the factor that the slowest frequency has.
nlohmann::json llama3_scaling(const GgufKeys& keys) {
  constexpr double kLow = 1, kHigh = 4, kContext = 8192;
  const std::vector<double> divisors = keys.file().tensor(kDivisors).to_doubles();
  bool same = static_cast<int64_t>(divisors.size()) == keys.rotated / 2 && !divisors.empty();
  const double factor = same ? divisors.back() : 0;
  for (size_t i = 0; same && i < divisors.size(); ++i) {
    const double frequency =
        std::pow(keys.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(keys.rotated));
    const double wavelength = 2 * std::numbers::pi / frequency;
    double expected = factor;
    if (wavelength < kContext / kHigh) {
      expected = 1;
    } else if (wavelength <= kContext / kLow) {
      const double smooth = (kContext / wavelength - kLow) / (kHigh - kLow);
      expected = 1 / ((1 - smooth) / factor + smooth);
    }
    same = std::abs(divisors[i] - expected) <= 1e-4 * expected;
  }
  if (!same)
    throw UnsupportedError(
        "{}: tensor {} is not the scaling that Llama 3.1 to 3.3 have; use the model's Hugging Face folder",
        keys.file().where(), kDivisors);
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", kLow},
          {"high_freq_factor", kHigh},
          {"original_max_position_embeddings", static_cast<int64_t>(kContext)}};
}

// Phi-3's: one factor a frequency for short contexts and one for long, and a factor of the attention.
nlohmann::json longrope_scaling(const GgufKeys& keys, nlohmann::json& config) {
  nlohmann::json out = {{"rope_type", "longrope"},
                        {"short_factor", keys.file().tensor(kShort).to_doubles()},
                        {"long_factor", keys.file().tensor(kLong).to_doubles()}};
  config["original_max_position_embeddings"] = keys.integer("rope.scaling.original_context_length");
  if (keys.has("rope.scaling.attn_factor")) out["attention_factor"] = keys.number("rope.scaling.attn_factor");
  return out;
}

}  // namespace

void add_rope_scaling(const GgufKeys& keys, nlohmann::json& config) {
  const bool factors = keys.has_tensor(kLong) && keys.has_tensor(kShort), divisors = keys.has_tensor(kDivisors);
  const double factor = keys.number("rope.scaling.factor", 0);
  // llama.cpp takes a factor without a type as linear.
  std::string type = keys.text("rope.scaling.type", factor != 0 && factor != 1 ? "linear" : "none");
  if (factors && type == "none") type = "longrope";
  if (divisors) {
    if (type != "none")
      throw UnsupportedError("{}: {} together with rope.scaling.type \"{}\" is not honoured", keys.file().where(),
                             kDivisors, shown(type));
    config["rope_scaling"] = llama3_scaling(keys);
  } else if (type == "longrope" && factors) {
    config["rope_scaling"] = longrope_scaling(keys, config);
  } else if (type == "linear") {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
  } else if (type == "yarn") {
    nlohmann::json scaling = {
        {"rope_type", "yarn"},
        {"factor", factor},
        {"original_max_position_embeddings", keys.integer("rope.scaling.original_context_length")}};
    if (keys.has("rope.scaling.yarn_beta_fast")) scaling["beta_fast"] = keys.number("rope.scaling.yarn_beta_fast");
    if (keys.has("rope.scaling.yarn_beta_slow")) scaling["beta_slow"] = keys.number("rope.scaling.yarn_beta_slow");
    config["rope_scaling"] = std::move(scaling);
  } else if (type == "none") {
    keys.ignore("rope.scaling.original_context_length");
  } else {
    throw UnsupportedError("{}: rope.scaling.type \"{}\" is not honoured", keys.file().where(), shown(type));
  }
}

}  // namespace hierarchos::formats
