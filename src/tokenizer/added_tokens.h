// Tokens that are looked for in a text before anything else is done with it.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokenizer/models/model.h"
#include "tokenizer/pre_tokenizers.h"

namespace hierarchos::tokenizers {

struct AddedToken {
  std::string content;
  bool single_word = false;             // not within a word
  bool lstrip = false, rstrip = false;  // takes the white space before, after it
  bool normalized = true;               // looked for in the normalized text, in its normalized form
  bool special = false;                 // left out of decoded text, if asked

  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

class AddedTokens {
 public:
  // Ids are the model's own where it has the token, else the next free ones: what a file says does not count, as for
  // the reference. DataError where two tokens are looked for by the same text.
  void add(const std::vector<AddedToken>& tokens, const Model& model, const Normalizer* normalizer,
           const std::string& where);

  // A text becomes pieces: tokens, and normalized text between them. `as_text`: special tokens are not looked for.
  void extract(std::string_view text, const Normalizer* normalizer, bool as_text, std::vector<Piece>& pieces,
               Scratch& scratch) const;

  const AddedToken* find(int32_t id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &found->second;
  }
  std::optional<int32_t> id_of(std::string_view content) const;
  // What decoding sees: the normalized form, if that is what was looked for.
  std::optional<std::string_view> token(int32_t id) const;
  bool is_special(std::string_view content) const { return special_.contains(std::string(content)); }
  bool has_special() const { return !special_.empty(); }
  int32_t max_id() const { return max_id_; }  // -1: there is none
  const std::unordered_map<int32_t, AddedToken>& by_id() const { return by_id_; }

 private:
  struct Found {
    int32_t id = -1;  // -1: what lies between
    size_t begin = 0, end = 0;
  };
  void find_all(std::string_view text, const ByteTrie& trie, bool as_text, std::vector<Found>& out) const;
  void split(std::vector<Piece>& pieces, const ByteTrie& trie, bool as_text) const;
  ByteTrie make_trie(bool normalized, const std::string& where) const;

  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, AddedToken> by_id_;
  std::unordered_map<int32_t, std::string> normal_forms_;  // where they differ from the content
  std::unordered_set<std::string> special_;
  ByteTrie raw_, normalized_;
  int32_t max_id_ = -1;
};

}  // namespace hierarchos::tokenizers
