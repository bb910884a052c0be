// Byte-pair encoding (Sennrich et al. 2016): a word's characters are joined pair by pair, the pair of the lowest rank
// first.
#pragma once

#include <array>

#include "tokenizer/models/model.h"

namespace hierarchos::tokenizers {

struct BpeOptions {
  std::string where;  // names the model in errors
  Vocabulary vocabulary;
  // By rank. If a pair is there twice, its last rank counts.
  std::vector<std::pair<std::string_view, std::string_view>> merges;
  std::string unknown;         // "": characters without a token vanish
  std::string prefix, suffix;  // of all characters but the first, and of the last
  bool fuse_unknown = false;   // neighbours that are unknown become one token
  bool byte_fallback = false;  // a character without a token becomes <0xNN>…, if all those are tokens
  bool ignore_merges = false;  // a piece that is a token is that token
  double dropout = 0;          // each merge is left out with this probability, drawn from the text itself
};

class Bpe : public Model {
 public:
  explicit Bpe(BpeOptions options);
  void tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const override;
  bool take_bytes() override;

 private:
  struct Merge {
    uint64_t pair = kNoPair;
    uint32_t rank = 0;
    int32_t id = 0;
  };
  static constexpr uint64_t kNoPair = ~uint64_t{0};
  static constexpr uint32_t kNoRank = ~uint32_t{0};

  void add_merges();
  void add_neighbours();
  const Merge* find_merge(int32_t left, int32_t right) const;
  uint32_t rank_of(int32_t left, int32_t right) const {
    const Merge* merge = find_merge(left, right);
    return merge ? merge->rank : kNoRank;
  }
  int32_t character_id(char32_t c) const {
    const auto& block = characters_[c >> 8];
    return block ? (*block)[c & 0xFF] : -1;
  }
  bool neighbours(char32_t left, char32_t right) const;
  void tokenize_characters(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const;
  void tokenize_word(std::string_view word, uint32_t begin, std::vector<Token>& out, ModelScratch& scratch) const;
  void spell_bytes(std::string_view word, ModelScratch& scratch) const;
  void spell_characters(std::string_view word, ModelScratch& scratch) const;
  void merge_few(ModelScratch& scratch) const;
  void merge_many(ModelScratch& scratch, uint64_t seed) const;

  BpeOptions options_;
  std::vector<Merge> merges_;    // a hash table; a power of two
  std::vector<int32_t> merged_;  // by rank: the token that is made
  std::optional<int32_t> unknown_;
  // Is a token known by its id, and longer after each merge? Then merges can be done in any way that keeps their order.
  bool plain_ = false;
  bool joins_stand_ins_ = false;  // do merges take the unknown token, or tokens of bytes?
  std::array<std::unique_ptr<std::array<int32_t, 256>>, 0x1100> characters_;  // ids of tokens of one character
  std::array<int32_t, 256> byte_tokens_{};                                    // <0x00> to <0xFF>; -1
  // Pairs of characters that stand side by side in a token that is made by merging, as a Bloom filter: between others
  // a text can be cut.
  std::vector<uint64_t> neighbours_;
  bool bytes_ = false;
  std::array<int32_t, 256> letters_{};  // if bytes_: the token of each byte
  std::vector<uint32_t> first_ranks_;   // if bytes_: of two bytes
  Vocabulary words_;                    // if bytes_ and ignore_merges: by bytes
};

}  // namespace hierarchos::tokenizers
