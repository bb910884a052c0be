// Byte-level BPE, GPT-2's kind (Radford et al. 2019): text is cut into words by patterns, each word's bytes are merged
// pair by pair. Equal to Hugging Face's tokenizers, id by id, but for characters younger than the Unicode of Oniguruma
// in use.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/package.h"

namespace hierarchos {

// What a tokenizer is made of, whatever the file it came from.
struct TokenizerData {
  std::string where;                // names the file in errors
  std::vector<std::string> tokens;  // by id, in GPT-2's alphabet of bytes ("Ġthe"); "" where there is none
  std::vector<std::pair<std::string, std::string>> merges;  // the first counts most
  struct Added {
    int32_t id = 0;
    std::string text;         // matched whole before anything else; the leftmost, then the longest counts
    bool special = true;      // left out by decode(skip_special)
    bool normalized = false;  // matched after all of those that are not
  };
  std::vector<Added> added;
  // One after another, each on the pieces of those before: what matches and what lies between are pieces.
  struct Split {
    std::string pattern;        // of Oniguruma; "" splits nothing
    bool prefix_space = false;  // a piece that does not begin with a space gets one first
  };
  std::vector<Split> splits;
  bool ignore_merges = false;  // a word that is a token is that token
  std::optional<int32_t> unknown, bos, eos;
  bool add_bos = false, add_eos = false;
};

// GGUF's metadata: tokenizer.ggml.*.
TokenizerData tokenizer_data(const formats::GgufFile& file);
// tokenizer.json; tokenizer_config.json (null when there is none) names the tokens that begin and end a text.
TokenizerData tokenizer_data(const nlohmann::json& tokenizer, const nlohmann::json& config, const std::string& where);

class Tokenizer {
 public:
  // Throws UnsupportedError naming the component that is not honoured, DataError where the file is malformed.
  static std::shared_ptr<Tokenizer> from_package(const formats::Package& package);
  explicit Tokenizer(TokenizerData data);
  ~Tokenizer();

  // Bytes that are no UTF-8 become words of their own, so that no byte is lost. add_special: with the tokens that the
  // model wants around a text, if it wants any; special tokens named in the text are matched in any case.
  std::vector<int32_t> encode(std::string_view text, bool add_special = true) const;
  // Always UTF-8: U+FFFD where the bytes are not. Ids that are no token are left out, since a model may have more rows.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  int32_t vocab_size() const;  // the highest id plus one
  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  std::optional<int32_t> token_id(const std::string& token) const;  // as the file spells it: "<|im_end|>", "Ġthe"

  // Decodes id by id: the texts together are decode() of all ids. Valid while the tokenizer is.
  class Stream {
   public:
    std::string push(int32_t id);  // what is certain by now: a code point comes with its last byte
    std::string finish();          // the rest

   private:
    friend class Tokenizer;
    Stream(const Tokenizer& tokenizer, bool skip_special) : tokenizer_(&tokenizer), skip_special_(skip_special) {}
    const Tokenizer* tokenizer_;
    bool skip_special_;
    std::string pending_;
  };
  Stream stream(bool skip_special = true) const { return {*this, skip_special}; }

 private:
  struct Impl;
  class Encoder;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace hierarchos
