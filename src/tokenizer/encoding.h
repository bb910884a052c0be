// What a text became, and how it is cut to a length and filled up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/json.h"

namespace hierarchos::tokenizers {

// A range of code points of the original text.
struct Offsets {
  uint32_t begin = 0, end = 0;
  friend bool operator==(const Offsets&, const Offsets&) = default;
};

// One entry a token in each vector.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;        // which sequence a model is told the token belongs to
  std::vector<Offsets> offsets;         // only if has_offsets
  std::vector<uint8_t> special_mask;    // 1: not of the text (added around it, or padding)
  std::vector<uint8_t> attention_mask;  // 0: padding
  // White space at the token's begin and end, in characters; only if has_spaces, for post-processors that ask for it.
  struct Space {
    uint32_t leading = 0, trailing = 0;
  };
  std::vector<Space> spaces;
  std::vector<Encoding> overflowing;  // what truncation cut off, in windows
  bool has_offsets = true, has_spaces = false;

  size_t size() const { return ids.size(); }
  // The sequence (0, 1, …) that each token comes from; -1 for special tokens.
  std::vector<int32_t> sequence_ids() const;

  // As the reference (tokenizers' Encoding) does them.
  void set_sequence(size_t sequence);
  void set_type(int32_t type) { type_ids.assign(size(), type); }
  void append(Encoding other);
  // Keeps at most `length` tokens; the rest becomes windows of that length which overlap by `stride`.
  void truncate(size_t length, size_t stride, bool left);
  struct Padding;
  void pad(size_t length, const Padding& padding);

 private:
  struct Range {
    size_t sequence = 0, begin = 0, end = 0;
  };
  void copy_tokens(const Encoding& other);
  Encoding window(size_t begin, size_t end) const;
  std::vector<Range> ranges_;  // of the sequences
};

struct Truncation {
  enum Strategy { LongestFirst, OnlyFirst, OnlySecond } strategy = LongestFirst;
  size_t max_length = 512, stride = 0;
  bool left = false;
  static Truncation read(Json value, const Place& place);
};

struct Encoding::Padding {
  std::optional<size_t> fixed;  // none: to the longest of the batch
  bool left = false;
  size_t multiple_of = 0;
  int32_t id = 0, type_id = 0;
  std::string token;
  static Padding read(Json value, const Place& place);
};
using Padding = Encoding::Padding;

// Cuts one sequence or two to max_length together. UserError where the strategy does not allow it.
void truncate(Encoding& first, Encoding* second, const Truncation& truncation);
void pad(std::vector<Encoding>& batch, const Padding& padding);

}  // namespace hierarchos::tokenizers
