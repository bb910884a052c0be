// What tokenizer.json calls normalizers: they change a text before it is cut into words.
#pragma once

#include <memory>

#include "tokenizer/json.h"
#include "tokenizer/scratch.h"

namespace hierarchos::tokenizers {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(AlignedText& text, Scratch& scratch) const = 0;
};

// UnsupportedError for a type that is not known, DataError for one that is malformed.
std::unique_ptr<Normalizer> read_normalizer(Json value, const Place& place);

// {"String": …} or {"Regex": …}.
class TextPattern {
 public:
  TextPattern(Json value, const Place& place);
  void find_all(std::string_view text, std::vector<Match>& out) const;
  bool is_literal() const { return !regex_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const Regex> regex_;  // null: plain text
};

// GPT-2's alphabet of bytes (Radford et al. 2019): printable Latin-1 stands for itself, the others for the code points
// from 256 on.
class ByteAlphabet {
 public:
  static char32_t letter(uint8_t byte);
  static int byte(char32_t letter);  // -1: no letter
  static void spell(AlignedText& text, Scratch& scratch);
  // The bytes that a token's letters stand for; false if one of its characters is no letter.
  static bool read(std::string_view token, std::string& bytes);
  static std::string spelled(std::string_view bytes);
};

// SentencePiece's precompiled map of characters: a double array of what is replaced, and the replacements.
class CharacterMap {
 public:
  // `blob` as the model file has it. DataError if it is malformed.
  CharacterMap(std::string_view blob, const std::string& where);
  // The replacement of the shortest, or longest, beginning of the text that has one.
  struct Found {
    size_t length = 0;  // of what is replaced; 0: nothing
    std::string_view replacement;
  };
  Found shortest(std::string_view text) const { return find(text, false); }
  Found longest(std::string_view text) const { return find(text, true); }

 private:
  Found find(std::string_view text, bool longest) const;
  std::vector<uint32_t> units_;
  std::string replacements_;
};

std::string decode_base64(std::string_view text, const std::string& where);

}  // namespace hierarchos::tokenizers
