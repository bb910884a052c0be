// Beam search as transformers defines it (generation/utils.py, _beam_search), for one prompt.
#pragma once

#include <span>
#include <vector>

#include "generate/decoder.h"
#include "generate/settings.h"

namespace hierarchos::generate {

// The best sequence, prompt included. The decoder must branch and have room for settings.num_beams sequences. Beams
// share the cache of their common history: each is a list of slots.
std::vector<int32_t> beam_search(Decoder& decoder, std::span<const int32_t> prompt, const GenerationSettings& settings);

}  // namespace hierarchos::generate
