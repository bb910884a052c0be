// A tokenizer.json: normalizer, pre-tokenizer, model, post-processor and decoder, and tokens that were added. Equal to
// Hugging Face's tokenizers 0.23.3 in ids, offsets and decoded text; docs/tokenizers.md lists where it is not.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/decoders.h"
#include "tokenizer/encoding.h"
#include "tokenizer/post_processors.h"

namespace hierarchos::tokenizers {

struct EncodeOptions {
  bool add_special = true;       // with the tokens that the post-processor puts around a text
  bool special_as_text = false;  // special tokens that stand in the text are text
  bool offsets = true;
  bool limits = true;  // with the file's truncation and padding
};

// The parts that a tokenizer is made of; all but the model may be missing.
struct Parts {
  std::string where;  // names the file in errors
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<PostProcessor> post_processor;
  std::unique_ptr<Decoder> decoder;
  std::vector<AddedToken> added;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  bool special_as_text = false;  // unless asked otherwise, special tokens that stand in a text are text
};

class Pipeline {
 public:
  explicit Pipeline(Parts parts);
  ~Pipeline();
  // DataError where the text is no tokenizer.json, UnsupportedError naming a component that is not known.
  static std::unique_ptr<Pipeline> from_json(std::string_view text, const std::string& where);

  // Texts are UTF-8 of less than 2 GiB: UserError if not. Safe from several threads at once.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;
  // On the program's threads; padded together.
  std::vector<Encoding> encode_batch(std::span<const std::string> texts, const EncodeOptions& options = {}) const;
  // Adds the ids of a text to `out`, as encode() without special tokens and truncation would give them.
  void encode_ids(std::string_view text, bool special_as_text, std::vector<int32_t>& out) const;

  // Ids that are no token are left out.
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const;
  std::string decode_tokens(std::vector<std::string> tokens) const;

  std::optional<int32_t> id_of(std::string_view token) const;
  std::optional<std::string_view> token(int32_t id) const;
  bool is_special(int32_t id) const;
  int32_t max_id() const;  // -1: there is no token
  const Parts& parts() const { return parts_; }
  const AddedTokens& added() const { return added_; }
  // How many tokens the post-processor adds to a text.
  size_t added_count(bool pair) const { return parts_.post_processor ? parts_.post_processor->added_tokens(pair) : 0; }

 private:
  struct Work;
  class Lease;
  Encoding encode_sequence(std::string_view text, int32_t type, const EncodeOptions& options, Work& work) const;
  void tokenize(std::string_view text, bool special_as_text, Work& work) const;
  template <typename Place>
  void fill(std::string_view text, Work& work, Encoding& out, Place place) const;
  Encoding finish(Encoding first, std::optional<Encoding> second, const EncodeOptions& options) const;
  Encoding::Space spaces_of(std::string_view token) const;

  Parts parts_;
  AddedTokens added_;
  bool bytes_ = false;  // does the model take bytes instead of letters for them?
  bool trims_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Work>> idle_;
};

// Decodes id by id, as the reference's DecodeStream: a piece of text comes when no later token can change it, as far as
// its end shows. DataError where a token changes the text that came before.
class DecodeStream {
 public:
  explicit DecodeStream(const Pipeline& pipeline, bool skip_special = true)
      : pipeline_(&pipeline), skip_special_(skip_special) {}
  // Nothing: no text yet.
  std::optional<std::string> step(int32_t id);
  // What step() still holds back.
  std::string rest() const;

 private:
  const Pipeline* pipeline_;
  bool skip_special_;
  std::vector<int32_t> ids_;
  std::string prefix_;
  size_t prefix_index_ = 0;
};

}  // namespace hierarchos::tokenizers
