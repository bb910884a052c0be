// The tokenizer of a model package, whatever files it comes in. Programs use this; pipeline.h has offsets, pairs,
// batches, truncation and padding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/package.h"
#include "tokenizer/pipeline.h"

namespace hierarchos {

class Tokenizer {
 public:
  // tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt, with what tokenizer_config.json,
  // special_tokens_map.json and added_tokens.json say; or a GGUF file's vocabulary. Throws UnsupportedError naming the
  // component that is not honoured, DataError where a file is malformed.
  static std::shared_ptr<Tokenizer> from_package(const formats::Package& package);
  static std::shared_ptr<Tokenizer> from_folder(const std::filesystem::path& folder);
  static std::shared_ptr<Tokenizer> from_gguf(const formats::GgufFile& file);
  // A SentencePiece model alone: no tokens around a text, and text that looks like a control piece is text.
  static std::shared_ptr<Tokenizer> from_sentencepiece(std::string_view bytes, const std::string& where);
  // A tokenizer.json alone.
  static std::shared_ptr<Tokenizer> from_json(std::string_view text, const std::string& where);

  explicit Tokenizer(std::unique_ptr<tokenizers::Pipeline> pipeline, std::optional<int32_t> bos = std::nullopt,
                     std::optional<int32_t> eos = std::nullopt)
      : pipeline_(std::move(pipeline)), bos_(bos), eos_(eos) {}

  // What is no UTF-8 is read as U+FFFD. add_special: with the tokens that the model wants around a text, if it wants
  // any; special tokens named in the text are matched in any case. Neither cut nor padded.
  std::vector<int32_t> encode(std::string_view text, bool add_special = true) const;
  // Always UTF-8: U+FFFD where the bytes are not. Ids that are no token are left out, since a model may have more rows.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;

  int32_t vocab_size() const { return pipeline_->max_id() + 1; }  // the highest id plus one
  std::optional<int32_t> bos() const { return bos_; }
  std::optional<int32_t> eos() const { return eos_; }
  std::optional<int32_t> token_id(const std::string& token) const {
    return pipeline_->id_of(token);
  }  // as the file spells it
  const tokenizers::Pipeline& pipeline() const { return *pipeline_; }

  // Decodes id by id: the texts together are decode() of all ids, but for decoders that let a token change the text
  // before it. Valid while the tokenizer is.
  class Stream {
   public:
    std::string push(int32_t id);  // what is certain by now: a code point comes with its last byte
    std::string finish();          // the rest

   private:
    friend class Tokenizer;
    Stream(const tokenizers::Pipeline& pipeline, bool skip_special)
        : pipeline_(&pipeline), skip_special_(skip_special), stream_(pipeline, skip_special) {}
    const tokenizers::Pipeline* pipeline_;
    bool skip_special_;
    tokenizers::DecodeStream stream_;
  };
  Stream stream(bool skip_special = true) const { return {*pipeline_, skip_special}; }

 private:
  std::unique_ptr<tokenizers::Pipeline> pipeline_;
  std::optional<int32_t> bos_, eos_;
};

}  // namespace hierarchos
