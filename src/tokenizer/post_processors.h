// What tokenizer.json calls post-processors: they put special tokens around one text or two, and trim offsets.
#pragma once

#include <memory>
#include <vector>

#include "tokenizer/encoding.h"

namespace hierarchos::tokenizers {

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  virtual size_t added_tokens(bool pair) const = 0;
  // Of one or two sequences, or the pieces that a processor before this one made of them.
  virtual void apply(std::vector<Encoding>& encodings, bool add_special) const = 0;
  // Does it need Encoding::spaces?
  virtual bool trims() const { return false; }
};

// UnsupportedError for a type that is not known, DataError for one that is malformed.
std::unique_ptr<PostProcessor> read_post_processor(Json value, const Place& place);

// A template of special tokens around a text and around two; what GGUF files and old packages ask for.
struct TemplateToken {
  std::string token;  // "A" and "B" with sequence set: the texts
  bool sequence = false;
  int32_t type = 0;
  std::vector<int32_t> ids;
};
std::unique_ptr<PostProcessor> make_template(std::vector<TemplateToken> single, std::vector<TemplateToken> pair);

}  // namespace hierarchos::tokenizers
