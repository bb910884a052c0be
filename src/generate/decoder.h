// A model with a cache, ready to read tokens: one recorded program for each number of tokens a call.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "models/decoder.h"
#include "runtime/session.h"

namespace hierarchos::generate {

struct DecoderOptions {
  int64_t context = 0;    // most tokens of a sequence, prompt included
  int64_t sequences = 1;  // more than one: histories may share and branch (beams)
  DType cache_dtype = DType::F32;
  DType compute = DType::F32;
  std::function<Type(const std::string&, const Shape&)> parameter_type;
  int64_t prefill_tokens = 256;  // most tokens of one call
};

class Decoder {
 public:
  // Parameters must be in `store`.
  Decoder(const models::Description& description, std::shared_ptr<Storehouse> store, const DecoderOptions& options);

  struct Token {
    int32_t id = 0, position = 0, segment = 0, slot = 0;
  };
  // Reads tokens (at most one call's), keeps their keys and values, and leaves the last `rows` rows' results to take.
  void read(std::span<const Token> tokens, int64_t rows);
  std::vector<float> logits();    // [rows, vocab] of the last read
  std::vector<int32_t> argmax();  // [rows]
  // With several sequences: the slot of each position of a segment.
  void set_history(int64_t segment, std::span<const int32_t> slots);

  // One sequence from the start: reads a prompt, in several calls if it is long. Then the last row's results can be
  // taken.
  void prefill(std::span<const int32_t> prompt);
  // And one token after another.
  void append(int32_t id);
  int64_t length() const { return length_; }

  const models::Description& description() const { return description_; }
  int64_t context() const { return options_.context; }
  int64_t slots() const { return slots_; }
  Session& session(int64_t tokens, int64_t rows);

 private:
  void check(std::span<const Token> tokens) const;
  models::Description description_;
  std::shared_ptr<Storehouse> store_;
  DecoderOptions options_;
  int64_t slots_ = 0;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Session>> sessions_;  // by tokens and rows
  std::vector<int32_t> block_table_;
  Session* last_ = nullptr;
  int64_t last_rows_ = 0;
  int64_t length_ = 0;
};

// The graph of one call.
std::shared_ptr<Graph> decoder_graph(const models::Description& description, const DecoderOptions& options,
                                     int64_t tokens, int64_t rows);

}  // namespace hierarchos::generate
