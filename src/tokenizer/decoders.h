// What tokenizer.json calls decoders: they make text of tokens again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/json.h"

namespace hierarchos::tokenizers {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Changes tokens in place; there may be more or fewer afterwards. Joined they are the text.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// UnsupportedError for a type that is not known, DataError for one that is malformed.
std::unique_ptr<Decoder> read_decoder(Json value, const Place& place);

// Valid UTF-8: one U+FFFD for what is none ("maximal subparts", as Unicode recommends).
std::string lossy(std::string_view bytes);

}  // namespace hierarchos::tokenizers
