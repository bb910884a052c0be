#include "models/rope_config.h"

#include <cmath>

namespace hierarchos::models {
namespace {

nn::RopeKind kind_of(const ConfigReader& rope, const std::string& name) {
  if (name == "default") return nn::RopeKind::Default;
  if (name == "linear") return nn::RopeKind::Linear;
  if (name == "dynamic") return nn::RopeKind::Dynamic;
  if (name == "yarn") return nn::RopeKind::Yarn;
  if (name == "longrope") return nn::RopeKind::LongRope;
  if (name == "llama3") return nn::RopeKind::Llama3;
  rope.unsupported("rope_type",
                   fmt::format("is \"{}\"; known are default, linear, dynamic, yarn, longrope, llama3", name));
}

double yarn_mscale(double scale, double mscale) { return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0; }

// What is said beside the object.
struct Outer {
  double theta = 10000, partial = 1;
  std::optional<int64_t> original;
};

nn::RopeParams parse(ConfigReader& rope, int64_t head_dim, int64_t max_positions, const Outer& outer) {
  nn::RopeParams p;
  // "rope_type" counts where both spellings are there.
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  rope.find("type");
  p.kind = kind_of(rope, type);
  p.theta = rope.number("rope_theta", outer.theta);
  const double partial = rope.number("partial_rotary_factor", outer.partial);
  p.dim = static_cast<int64_t>(static_cast<double>(head_dim) * partial);
  p.max_positions = max_positions;
  if (!(p.theta > 0)) rope.fail("rope_theta", fmt::format("must be positive, not {}", p.theta));
  if (!(partial > 0 && partial <= 1))
    rope.fail("partial_rotary_factor", fmt::format("must be in (0, 1], not {}", partial));
  // A part of an odd number of channels is rounded up, where that part's size is not needed besides.
  const bool may_be_odd = p.kind != nn::RopeKind::Yarn && p.kind != nn::RopeKind::LongRope && p.dim < head_dim;
  if (p.dim < 2 || (p.dim % 2 != 0 && !may_be_odd))
    rope.unsupported("partial_rotary_factor",
                     fmt::format("{} and a head of {} channels give {} rotated ones; RoPE needs an even number of at "
                                 "least 2",
                                 partial, head_dim, p.dim));

  std::optional<double> factor = rope.number({"factor"});
  // The key beside the object wins over the one in it, which wins over max_position_embeddings.
  const bool scaled =
      p.kind == nn::RopeKind::Yarn || p.kind == nn::RopeKind::LongRope || p.kind == nn::RopeKind::Llama3;
  const std::optional<int64_t> inner_original = rope.integer({"original_max_position_embeddings"});
  p.original_max_positions = outer.original.value_or(inner_original.value_or(max_positions));
  if (scaled && p.original_max_positions < 2)
    rope.fail("original_max_position_embeddings", fmt::format("must be at least 2, not {}", p.original_max_positions));
  const double implied =
      static_cast<double>(max_positions) / static_cast<double>(std::max<int64_t>(1, p.original_max_positions));
  const std::optional<double> attention_factor = rope.number({"attention_factor"});
  const std::optional<double> mscale = rope.number({"mscale"}), mscale_all_dim = rope.number({"mscale_all_dim"});
  const double beta_fast = rope.number("beta_fast", 32), beta_slow = rope.number("beta_slow", 1);
  p.truncate = rope.flag("truncate", true);
  const std::optional<double> low = rope.number({"low_freq_factor"}), high = rope.number({"high_freq_factor"});
  p.short_factor = rope.numbers({"short_factor"}).value_or(std::vector<double>{});
  p.long_factor = rope.numbers({"long_factor"}).value_or(std::vector<double>{});
  // Settings of another kind of scaling than `rope_type` are read above and have no effect, as in the reference.
  rope.harmless({"finetuned"});  // a note of YaRN's authors
  rope.finish();

  auto need_factor = [&]() {
    if (!factor) rope.fail("factor", fmt::format("is missing; \"{}\" needs it", type));
    if (!(*factor > 0) || !std::isfinite(*factor))
      rope.fail("factor", fmt::format("must be positive, not {}", *factor));
    return *factor;
  };
  switch (p.kind) {
    case nn::RopeKind::Default:
      break;
    case nn::RopeKind::Linear:
      p.factor = need_factor();
      break;
    case nn::RopeKind::Dynamic:
      p.factor = need_factor();
      if (p.dim < 4)
        rope.unsupported(
            "rope_type",
            "is dynamic; a rotation of 2 channels cannot be used with dynamic RoPE, whose exponent is dim/(dim - 2)");
      break;
    case nn::RopeKind::Yarn:
      if (!factor) factor = implied;
      p.factor = need_factor();
      p.beta_fast = beta_fast == 0 ? 32 : beta_fast;  // 0 means unset, as in the reference
      p.beta_slow = beta_slow == 0 ? 1 : beta_slow;
      if (attention_factor)
        p.attention_factor = *attention_factor;
      else if (mscale.value_or(0) != 0 && mscale_all_dim.value_or(0) != 0)
        p.attention_factor = yarn_mscale(p.factor, *mscale) / yarn_mscale(p.factor, *mscale_all_dim);
      else
        p.attention_factor = yarn_mscale(p.factor, 1);
      break;
    case nn::RopeKind::Llama3:
      p.factor = need_factor();
      if (!low) rope.fail("low_freq_factor", "is missing; \"llama3\" needs it");
      if (!high) rope.fail("high_freq_factor", "is missing; \"llama3\" needs it");
      p.low_freq_factor = *low;
      p.high_freq_factor = *high;
      if (!(*low > 0) || !(*high > *low))
        rope.fail(
            "high_freq_factor",
            fmt::format("must be larger than low_freq_factor, and that positive; they are {} and {}", *high, *low));
      break;
    case nn::RopeKind::LongRope: {
      if (!factor) factor = implied;
      p.factor = need_factor();
      for (auto [key, list] : {std::pair{"short_factor", &p.short_factor}, {"long_factor", &p.long_factor}}) {
        if (static_cast<int64_t>(list->size()) != p.pairs())
          rope.fail(key, fmt::format("must hold {} numbers, one a pair of rotated channels, not {}", p.pairs(),
                                     list->size()));
        for (double f : *list)
          if (!(f > 0)) rope.fail(key, fmt::format("must hold positive numbers, not {}", f));
      }
      const double original = static_cast<double>(p.original_max_positions);
      if (attention_factor)
        p.attention_factor = *attention_factor;
      else if (p.factor > 1)
        p.attention_factor = std::sqrt(1 + std::log(p.factor) / std::log(original));
      break;
    }
  }
  return p;
}

}  // namespace

nn::RopeParams read_rope(ConfigReader& config, int64_t head_dim, int64_t max_positions, const RopeDefaults& defaults) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  const nlohmann::json* old_spelling = config.find("rope_scaling");
  const nlohmann::json* new_spelling = config.find("rope_parameters");
  for (auto [key, value] : {std::pair{"rope_scaling", old_spelling}, {"rope_parameters", new_spelling}})
    if (value && !value->is_object()) config.fail(key, fmt::format("must be an object, not {}", value->dump()));
  // As the reference: a rope_scaling that is not empty wins.
  const bool use_old = old_spelling && !old_spelling->empty();
  ConfigReader rope(use_old        ? *old_spelling
                    : new_spelling ? *new_spelling
                                   : kEmpty,
                    config.where(), use_old ? "rope_scaling." : "rope_parameters.");
  Outer outer;
  outer.theta = config.number(defaults.theta_key, defaults.theta);
  outer.partial = config.number(defaults.partial_key, defaults.partial);
  outer.original = config.integer({"original_max_position_embeddings"});
  if (!outer.original) outer.original = defaults.original_max_positions;
  return parse(rope, head_dim, max_positions, outer);
}

nn::RopeParams read_rope_entry(ConfigReader& rope, int64_t head_dim, int64_t max_positions, double default_theta) {
  Outer outer;
  outer.theta = default_theta;
  nn::RopeParams p = parse(rope, head_dim, max_positions, outer);
  p.truncate = true;  // the reference looks for it beside the entries
  return p;
}

void expect_whole_rotation(const ConfigReader& config, const nn::RopeParams& rope, int64_t head_dim) {
  // The reference's default rotation ignores the factor, its scaled ones fail with it.
  if (rope.dim != head_dim) config.unsupported("partial_rotary_factor", "is below 1; this family rotates whole heads");
}

}  // namespace hierarchos::models
