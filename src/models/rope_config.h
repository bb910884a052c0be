// RoPE settings of config.json in both spellings.
#pragma once

#include "models/config_reader.h"
#include "nn/rope.h"

namespace hierarchos::models {

// Reads `rope_parameters` {rope_type, rope_theta, …} (transformers 5) or `rope_theta` with `rope_scaling`
// {type | rope_type, …} (before), with the reference's order of precedence.
// head_dim: channels of a head; max_positions: max_position_embeddings.
nn::RopeParams read_rope(ConfigReader& config, int64_t head_dim, int64_t max_positions, double default_theta = 10000);

}  // namespace hierarchos::models
