// WordPiece (Devlin et al. 2019), Unigram (Kudo 2018), and whole words.
#pragma once

#include "tokenizer/models/model.h"

namespace hierarchos::tokenizers {

// The longest beginning of a word that is a token, then the longest of the rest with a prefix before it.
class WordPiece : public Model {
 public:
  struct Options {
    std::string where, unknown, prefix;
    uint64_t most_characters = 100;  // longer words are unknown
  };
  WordPiece(Vocabulary vocabulary, Options options);
  void tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const override;

 private:
  bool cut(std::string_view word, std::vector<Token>& out, ModelScratch& scratch) const;
  Options options_;
};

class WordLevel : public Model {
 public:
  WordLevel(Vocabulary vocabulary, std::string unknown, std::string where);
  void tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const override;

 private:
  std::string unknown_, where_;
};

// The cut whose tokens' scores (logarithms of probabilities) have the largest sum.
class Unigram : public Model {
 public:
  struct Piece {
    std::string_view text;
    double score = 0;
  };
  // By id; of equal texts the last counts. DataError if `unknown` is no id.
  Unigram(const std::vector<Piece>& pieces, std::optional<int32_t> unknown, bool byte_fallback, std::string where);
  void tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const override;
  std::optional<std::string_view> token(int32_t id) const override;
  bool takes_any_text(int32_t id) const override { return id == unknown_; }
  size_t size() const override { return texts_.size(); }
  int32_t max_id() const override { return static_cast<int32_t>(texts_.size()) - 1; }

 private:
  void find_path(std::string_view piece, ModelScratch& scratch) const;
  void add(std::string_view piece, uint32_t begin, uint32_t end, std::vector<Token>& out) const;

  std::vector<std::string> texts_;
  std::vector<double> scores_;
  ByteTrie trie_;
  double unknown_score_ = 0;
  std::optional<int32_t> unknown_;
  std::vector<int32_t> byte_tokens_;  // if byte_fallback
  std::string where_;
};

}  // namespace hierarchos::tokenizers
