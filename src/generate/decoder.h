// A model with a cache, ready to read tokens: one recorded program for each number of tokens a call, with what chooses
// the next token at its end.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "generate/processors.h"
#include "models/decoder.h"
#include "ops/sampling/count_tokens/count_tokens.h"
#include "runtime/session.h"

namespace hierarchos::generate {

struct DecoderOptions {
  int64_t context = 0;     // most tokens of a sequence, prompt included
  int64_t sequences = 1;   // that are read side by side
  bool branching = false;  // histories may share and branch (beams): any slot may belong to any of them
  DType cache_dtype = DType::F32;
  DType compute = DType::F32;
  std::function<Type(const std::string&, const Shape&)> parameter_type;
  int64_t prefill_tokens = 256;  // most tokens of one call
};

// What a program has behind the logits. Values differ from call to call; these parts need programs of their own.
struct DecoderParts {
  bool changes = false;    // penalties and edits of the logits
  bool draw = false;       // sampling; otherwise the largest
  int64_t log_probs = -1;  // -1: none; 0: of the chosen tokens; n: also of the n likeliest
  int64_t edits = 0;       // room for edits of a row
  auto operator<=>(const DecoderParts&) const = default;
};

class Decoder {
 public:
  // Parameters must be in `store`.
  Decoder(const models::Description& description, std::shared_ptr<Storehouse> store, const DecoderOptions& options);

  struct Token {
    int32_t id = 0, position = 0, segment = 0, slot = 0;
    int32_t kind = ops::kUncounted;  // as penalties count it (ops::TokenKind)
  };
  // A token after which the next one is wanted, and how to choose it.
  struct Row {
    int32_t token = 0;  // index in the call
    LogitChanges changes;
    std::array<float, ops::kSampleSettings> sample = {0, 0, 1, 0, 1, 0, 0};
    uint64_t key = 0;
    int32_t step = 0;
  };
  // Reads tokens (at most one call's), keeps their keys and values, and leaves the rows' results to take. A call may
  // want no row.
  void read(std::span<const Token> tokens, std::span<const Row> rows, const DecoderParts& parts);
  // The likeliest after each of the last `rows` tokens.
  void read(std::span<const Token> tokens, int64_t rows);

  // Of the last read, by rows.
  std::vector<float> logits();  // [rows, vocab]
  std::vector<int32_t> next();  // [rows] the chosen ids
  std::vector<float> facts();   // [rows, 2] of drawn ids (ops::SampleResult)
  struct LogProbs {
    std::vector<int32_t> ids;   // [rows, 1 + log_probs]: the chosen id, then the likeliest
    std::vector<float> values;  // of the model's own distribution, before any change
  };
  LogProbs log_probs();

  // With branching: the slot of each position of a segment.
  void set_history(int64_t segment, std::span<const int32_t> slots);
  // Without: where a sequence's position is kept.
  int32_t slot(int64_t sequence, int64_t position) const {
    return static_cast<int32_t>(sequence * options_.context + position);
  }
  // How many tokens the next call of a prompt of which `left` are left should take.
  int64_t call_tokens(int64_t left) const;

  const models::Description& description() const { return description_; }
  int64_t context() const { return options_.context; }
  int64_t sequences() const { return options_.sequences; }
  bool branching() const { return options_.branching; }
  int64_t prefill_tokens() const { return options_.prefill_tokens; }
  // Whether a prompt must be read in one call, since its length counts (some scalings of RoPE).
  bool whole_prompts() const;
  // Tokens whose keys and values are kept, by sequence: kept by who reads.
  std::vector<int32_t>& kept(int64_t sequence) { return kept_.at(static_cast<size_t>(sequence)); }
  Session& session(int64_t tokens, int64_t rows, const DecoderParts& parts = {});

 private:
  void check(std::span<const Token> tokens) const;
  void set_tokens(Session& session, std::span<const Token> tokens, int64_t capacity, bool counted);
  void set_rows(Session& session, std::span<const Row> rows, int64_t capacity, const DecoderParts& parts);

  models::Description description_;
  std::shared_ptr<Storehouse> store_;
  DecoderOptions options_;
  using Key = std::tuple<int64_t, int64_t, DecoderParts>;
  struct Entry {
    std::unique_ptr<Session> session;
    int64_t table = -1;  // version of the block table that it has
  };
  std::map<Key, Entry> sessions_;
  std::vector<std::vector<int32_t>> kept_;
  std::vector<int32_t> block_table_;
  int64_t table_version_ = 0;
  Session* last_ = nullptr;
  size_t last_rows_ = 0;
};

// The graph of one call.
std::shared_ptr<Graph> decoder_graph(const models::Description& description, const DecoderOptions& options,
                                     int64_t tokens, int64_t rows, const DecoderParts& parts);

}  // namespace hierarchos::generate
