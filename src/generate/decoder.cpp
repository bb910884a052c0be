#include "generate/decoder.h"

#include <algorithm>
#include <numeric>

#include "ops/sampling/argmax/argmax.h"

namespace hierarchos::generate {
namespace {

int64_t slots_of(const DecoderOptions& options) { return options.context * options.sequences; }

// Capacities grow by factors of four, so that few programs serve all lengths.
int64_t bucket(int64_t tokens, int64_t most) {
  int64_t size = 1;
  while (size < tokens) size *= 4;
  return std::max(tokens, std::min(size, most));
}

}  // namespace

std::shared_ptr<Graph> decoder_graph(const models::Description& description, const DecoderOptions& options,
                                     int64_t tokens, int64_t rows) {
  auto graph = std::make_shared<Graph>();
  graph->set_compute_type(options.compute);
  models::ModelOptions model;
  model.tokens = tokens;
  model.logit_rows = rows;
  model.cache = options.sequences > 1 ? models::CacheKind::Table : models::CacheKind::Contiguous;
  model.cache_slots = slots_of(options);
  model.cache_dtype = options.cache_dtype;
  model.table_segments = options.sequences;
  model.parameter_type = options.parameter_type;
  const models::ModelValues values = models::build(description, *graph, model);
  graph->output("logits", values.logits);
  graph->output("next", ops::argmax(values.logits));
  return graph;
}

Decoder::Decoder(const models::Description& description, std::shared_ptr<Storehouse> store,
                 const DecoderOptions& options)
    : description_(description), store_(std::move(store)), options_(options), slots_(slots_of(options)) {
  if (options.context < 1) throw UserError("a decoder needs room for at least one token");
  if (options.sequences > 1) block_table_.assign(static_cast<size_t>(options.sequences * slots_), -1);
}

Session& Decoder::session(int64_t tokens, int64_t rows) {
  auto& session = sessions_[{tokens, rows}];
  if (!session)
    session = std::make_unique<Session>(
        Program::compile(decoder_graph(description_, options_, tokens, rows), store_->backend()), store_);
  return *session;
}

void Decoder::check(std::span<const Token> tokens) const {
  for (const Token& t : tokens) {
    if (t.id < 0 || t.id >= description_.vocab_size)
      throw UserError("token id {} is outside the vocabulary of {}", t.id, description_.vocab_size);
    if (description_.positions == models::Positions::Learned && t.position >= description_.max_positions)
      throw UserError("position {} is past the {} positions that this model has learned", t.position,
                      description_.max_positions);
    if (t.slot < 0 || t.slot >= slots_) throw UserError("the context of {} tokens is full", options_.context);
  }
}

void Decoder::read(std::span<const Token> tokens, int64_t rows) {
  check(tokens);
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t capacity = bucket(count, std::max(options_.prefill_tokens, options_.sequences));
  Session& s = session(capacity, rows);
  const auto size = static_cast<size_t>(capacity);
  std::vector<int32_t> ids(size, -1), positions(size, 0), segments(size, -1), slots(size, -1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids[i] = tokens[i].id;
    positions[i] = tokens[i].position;
    segments[i] = tokens[i].segment;
    slots[i] = tokens[i].slot;
  }
  std::vector<int32_t> logit_rows(static_cast<size_t>(rows));
  std::iota(logit_rows.begin(), logit_rows.end(), static_cast<int32_t>(count - rows));
  s.set_input("input_ids", ids);
  s.set_input("positions", positions);
  s.set_input("segments", segments);
  s.set_input("slots", slots);
  s.set_input("logit_rows", logit_rows);
  if (options_.sequences > 1) s.set_input("block_table", block_table_);
  s.run();
  last_ = &s;
  last_rows_ = rows;
}

std::vector<float> Decoder::logits() {
  const HostTensor t = last_->output("logits");
  return {t.data<float>().begin(), t.data<float>().end()};
}

std::vector<int32_t> Decoder::argmax() {
  const HostTensor t = last_->output("next");
  return {t.data<int32_t>().begin(), t.data<int32_t>().end()};
}

void Decoder::set_history(int64_t segment, std::span<const int32_t> slots) {
  auto row = block_table_.begin() + segment * slots_;
  std::copy(slots.begin(), slots.end(), row);
}

void Decoder::prefill(std::span<const int32_t> prompt) {
  if (prompt.empty()) throw UserError("the prompt is empty");
  if (static_cast<int64_t>(prompt.size()) > options_.context)
    throw UserError("the prompt of {} tokens does not fit the context of {}", prompt.size(), options_.context);
  // These scalings depend on the length of the whole prompt, so it is read in one call.
  const bool whole =
      description_.positions == models::Positions::Rope &&
      (description_.rope.kind == nn::RopeKind::Dynamic || description_.rope.kind == nn::RopeKind::LongRope);
  const size_t most = whole ? prompt.size() : static_cast<size_t>(options_.prefill_tokens);
  for (size_t at = 0; at < prompt.size(); at += most) {
    std::vector<Token> tokens;
    for (size_t i = at; i < std::min(prompt.size(), at + most); ++i) {
      const auto position = static_cast<int32_t>(i);
      tokens.push_back({prompt[i], position, 0, position});
    }
    read(tokens, 1);
  }
  length_ = static_cast<int64_t>(prompt.size());
}

void Decoder::append(int32_t id) {
  const auto position = static_cast<int32_t>(length_);
  const Token token{id, position, 0, position};
  read({&token, 1}, 1);
  ++length_;
}

}  // namespace hierarchos::generate
