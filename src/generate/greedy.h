// Greedy search.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "generate/decoder.h"
#include "generate/settings.h"

namespace hierarchos::generate {

// Prompt and new ids, up to settings.max_new_tokens or an end token (included). `on_token` sees each new id as it comes
// and may return false to stop. Where no setting needs scores, the choice is made on the device.
std::vector<int32_t> greedy(Decoder& decoder, std::span<const int32_t> prompt, const GenerationSettings& settings,
                            const std::function<bool(int32_t)>& on_token = {});

}  // namespace hierarchos::generate
