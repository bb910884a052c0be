// SentencePiece models (Kudo and Richardson 2018), as sentencepiece 0.2.3 encodes and decodes with them: .model files,
// and the same vocabulary in GGUF files.
#pragma once

#include "tokenizer/pipeline.h"

namespace hierarchos::tokenizers {

struct SpmPiece {
  // The numbers are those of the files.
  enum Type : uint8_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };
  std::string text;
  float score = 0;
  Type type = Normal;
};

struct SpmModel {
  std::string where;  // names the file in errors
  std::vector<SpmPiece> pieces;
  enum Kind : uint8_t { Unigram = 1, Bpe = 2, Word = 3, Char = 4 } kind = Unigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  bool dummy_prefix_first_only = false;  // not in the text after an added token
  std::string character_map;             // precompiled; "": none
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string bos = "<s>", eos = "</s>";  // the pieces that begin and end a text, if they are control pieces

  // DataError where the bytes are no model.
  static SpmModel read(std::string_view bytes, const std::string& where);
  std::optional<int32_t> id_of_control(std::string_view piece) const;
};

// Normalizer, model and decoder. There are no added tokens: text that looks like a control piece is text.
Parts make_parts(SpmModel model);

}  // namespace hierarchos::tokenizers
