// What tokenizer.json calls pre-tokenizers: they cut a text into the pieces that the model sees one by one.
#pragma once

#include <memory>
#include <vector>

#include "tokenizer/normalizers.h"

namespace hierarchos::tokenizers {

struct Piece {
  AlignedText text;
  int32_t id = -1;  // of the added token that the piece is; -1: to be tokenized
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Bytes are spelled in GPT-2's letters at the end only if asked: models of bytes do without.
  virtual void apply(std::vector<Piece>& pieces, Scratch& scratch, bool spell) const = 0;
  // Are the pieces bytes spelled in letters, and nothing cuts them after that?
  virtual bool ends_in_letters() const { return false; }
};

// UnsupportedError for a type that is not known, DataError for one that is malformed.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(Json value, const Place& place);

// Patterns that many tokenizers share, by hand. Each covers a text with matches.
using Splitter = void (*)(std::string_view text, std::vector<Match>& out);
Splitter find_splitter(std::string_view pattern);  // null: there is none
extern const char* const kGpt2Pattern;

// SentencePiece's mark for a space. Its options are those of the decoder of the same name, too.
struct MetaspaceOptions {
  explicit MetaspaceOptions(const Object& o);
  enum Scheme { First, Never, Always } scheme = Always;
  bool split = true;
  char32_t replacement = 0x2581;
  std::string bytes;  // of the replacement
};

}  // namespace hierarchos::tokenizers
