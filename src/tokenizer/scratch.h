// Memory that encoding uses again and again.
#pragma once

#include <vector>

#include "tokenizer/aligned_text.h"

namespace hierarchos::tokenizers {

struct Scratch {
  TextArena arena;
  std::vector<unicode::Change> changes;
  std::vector<Match> matches;
  std::vector<size_t> ends;
};

}  // namespace hierarchos::tokenizers
