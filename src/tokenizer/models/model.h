// What tokenizer.json calls the model: it makes tokens of one piece of text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/json.h"
#include "tokenizer/models/word_cache.h"
#include "tokenizer/vocabulary.h"

namespace hierarchos::tokenizers {

// Memory of one thread.
struct ModelScratch {
  WordCache cache;
  std::vector<int32_t> ids, next, previous;
  std::vector<uint32_t> lengths, ranks;
  std::vector<uint64_t> heap, skipped;
  std::string text;
  struct Step {  // of the best path, to one byte's place
    double score = 0;
    uint32_t from = 0;
    int32_t id = -1;  // -1: nothing ends here
  };
  std::vector<Step> steps;
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of a piece: UTF-8, not empty. UserError where the text has what the model cannot express.
  virtual void tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const = 0;
  // Does a token of this id stand for whatever text it was found at, in the reference's eyes?
  virtual bool takes_any_text(int32_t) const { return false; }
  // From now on pieces are bytes, not GPT-2's letters for them. False: this model cannot.
  virtual bool take_bytes() { return false; }

  std::optional<int32_t> id_of(std::string_view token) const { return vocabulary_.find(token); }
  virtual std::optional<std::string_view> token(int32_t id) const { return vocabulary_.token(id); }
  virtual size_t size() const { return vocabulary_.size(); }
  virtual int32_t max_id() const { return vocabulary_.max_id(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

// UnsupportedError for a type that is not known, DataError for one that is malformed.
std::unique_ptr<Model> read_model(Json value, const Place& place);

// {"token": id, …}
Vocabulary read_vocabulary(Json value, const Place& place);

}  // namespace hierarchos::tokenizers
