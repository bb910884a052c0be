// RoPE settings of config.json in both spellings.
#pragma once

#include "models/config_reader.h"
#include "nn/rope.h"

namespace hierarchos::models {

struct RopeDefaults {
  double theta = 10000, partial = 1;
  // Spellings beside rope_parameters, in older files.
  std::string_view theta_key = "rope_theta", partial_key = "partial_rotary_factor";
  std::optional<int64_t> original_max_positions;  // where the configuration class has a default of its own
};

// Reads `rope_parameters` {rope_type, rope_theta, …} (transformers 5) or `rope_theta` with `rope_scaling`
// {type | rope_type, …} (before), with the reference's order of precedence.
// head_dim: channels of a head; max_positions: max_position_embeddings.
nn::RopeParams read_rope(ConfigReader& config, int64_t head_dim, int64_t max_positions,
                         const RopeDefaults& defaults = {});

// The same of one object that already is in the current spelling: an entry of a rope_parameters that has one for each
// type of layer. `rope` is used up (ConfigReader::finish).
nn::RopeParams read_rope_entry(ConfigReader& rope, int64_t head_dim, int64_t max_positions, double default_theta);

// Refuses a partial rotation, for families whose reference rotates whole heads only.
void expect_whole_rotation(const ConfigReader& config, const nn::RopeParams& rope, int64_t head_dim);

}  // namespace hierarchos::models
