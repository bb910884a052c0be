#include "generate/decoder.h"

#include <algorithm>
#include <bit>

#include "ops/sampling/argmax/argmax.h"
#include "ops/sampling/token_log_probs/token_log_probs.h"

namespace hierarchos::generate {
namespace {

// Capacities are powers of two, so that few programs serve all lengths.
int64_t power_of_two(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }

Type ints(Shape shape) { return Type(DType::I32, shape); }

}  // namespace

std::shared_ptr<Graph> decoder_graph(const models::Description& description, const DecoderOptions& options,
                                     int64_t tokens, int64_t rows, const DecoderParts& parts) {
  auto graph = std::make_shared<Graph>();
  graph->set_compute_type(options.compute);
  models::ModelOptions model;
  model.tokens = tokens;
  model.logit_rows = rows;
  const bool table = options.sequences > 1 || options.branching;
  model.cache = table ? models::CacheKind::Table : models::CacheKind::Contiguous;
  model.cache_slots = options.context * options.sequences;
  model.cache_dtype = options.cache_dtype;
  model.table_segments = options.sequences;
  model.page = options.branching ? 1 : options.context;
  model.parameter_type = options.parameter_type;
  const models::ModelValues values = models::build(description, *graph, model);
  graph->output("logits", values.logits);

  const Scope scope(*graph, "choice");
  Value scores = values.logits;
  if (parts.changes) {
    const Shape edits{rows, parts.edits};
    Value counts = graph->state("token_counts", ints({options.sequences, description.vocab_size}), false);
    const Value counted =
        ops::count_tokens(counts, graph->input("segments", ints({tokens})), graph->input("input_ids", ints({tokens})),
                          graph->input("token_kinds", ints({tokens})));
    graph->update(counts, counted);
    scores = ops::process_logits(scores, graph->input("rules", Type(DType::F32, {rows, ops::kLogitRules})), counted,
                                 graph->input("count_rows", ints({rows})), graph->input("edit_tokens", ints(edits)),
                                 graph->input("edit_kinds", ints(edits)),
                                 graph->input("edit_values", Type(DType::F32, edits)));
  }
  Value next;
  if (parts.draw) {
    const ops::SampleResult drawn =
        ops::sample(scores, graph->input("sample_settings", Type(DType::F32, {rows, ops::kSampleSettings})),
                    graph->input("sample_keys", ints({rows, 2})), graph->input("sample_steps", ints({rows})));
    next = drawn.ids;
    graph->output("facts", drawn.facts);
  } else {
    next = ops::argmax(scores);
  }
  graph->output("next", next);
  if (parts.log_probs >= 0) {
    const ops::TokenLogProbs likeliest = ops::token_log_probs(values.logits, next, parts.log_probs);
    graph->output("log_prob_ids", likeliest.ids);
    graph->output("log_probs", likeliest.values);
  }
  return graph;
}

Decoder::Decoder(const models::Description& description, std::shared_ptr<Storehouse> store,
                 const DecoderOptions& options)
    : description_(description), store_(std::move(store)), options_(options) {
  if (options.context < 1) throw UserError("a decoder needs room for at least one token");
  if (options.sequences < 1) throw UserError("a decoder needs room for at least one sequence");
  kept_.resize(static_cast<size_t>(options.sequences));
  if (options.branching) {
    block_table_.assign(static_cast<size_t>(options.sequences * options.sequences * options.context), -1);
  } else if (options.sequences > 1) {
    // A page is a sequence's whole context; the table is [sequences, sequences], of which the first column counts.
    for (int64_t s = 0; s < options.sequences; ++s)
      for (int64_t b = 0; b < options.sequences; ++b) block_table_.push_back(b == 0 ? static_cast<int32_t>(s) : -1);
  }
}

bool Decoder::whole_prompts() const { return description_.length_changes_rope(); }

// Rather two calls than one that is half empty: the work of a call grows with its capacity.
int64_t Decoder::call_tokens(int64_t left) const {
  if (whole_prompts()) return left;
  const int64_t most = std::min(left, options_.prefill_tokens), up = power_of_two(most);
  return 4 * most >= 3 * up || most <= 8 ? most : up / 2;
}

Session& Decoder::session(int64_t tokens, int64_t rows, const DecoderParts& parts) {
  auto& session = sessions_[{tokens, rows, parts}].session;
  if (!session)
    session = std::make_unique<Session>(
        Program::compile(decoder_graph(description_, options_, tokens, rows, parts), store_->backend()), store_);
  return *session;
}

void Decoder::check(std::span<const Token> tokens) const {
  for (const Token& t : tokens) {
    if (t.id < 0 || t.id >= description_.vocab_size)
      throw UserError("token id {} is outside the vocabulary of {}", t.id, description_.vocab_size);
    if (description_.positions == models::Positions::Learned && t.position >= description_.max_positions)
      throw UserError("position {} is past the {} positions that this model has learned", t.position,
                      description_.max_positions);
    if (t.slot < 0 || t.slot >= options_.context * options_.sequences)
      throw UserError("the context of {} tokens is full", options_.context);
  }
}

void Decoder::set_tokens(Session& s, std::span<const Token> tokens, int64_t capacity, bool counted) {
  const auto size = static_cast<size_t>(capacity);
  std::vector<int32_t> ids(size, -1), positions(size, 0), segments(size, -1), slots(size, -1), kinds(size, 0);
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids[i] = tokens[i].id;
    positions[i] = tokens[i].position;
    segments[i] = tokens[i].segment;
    slots[i] = tokens[i].slot;
    kinds[i] = tokens[i].kind;
  }
  s.set_input("input_ids", ids);
  s.set_input("positions", positions);
  s.set_input("segments", segments);
  s.set_input("slots", slots);
  if (counted) s.set_input("token_kinds", kinds);
}

void Decoder::set_rows(Session& s, std::span<const Row> rows, int64_t capacity, const DecoderParts& parts) {
  const auto size = static_cast<size_t>(capacity), width = static_cast<size_t>(parts.edits);
  std::vector<int32_t> logit_rows(size, 0), keys(2 * size, 0), steps(size, 0);
  std::vector<int32_t> edit_tokens(size * width, -1), edit_kinds(size * width, 0);
  std::vector<float> rules, settings, edit_values(size * width, 0);
  static const Row padding;
  for (size_t r = 0; r < size; ++r) {
    const Row& row = r < rows.size() ? rows[r] : padding;
    logit_rows[r] = row.token;
    rules.insert(rules.end(), row.changes.rules.begin(), row.changes.rules.end());
    settings.insert(settings.end(), row.sample.begin(), row.sample.end());
    keys[2 * r] = static_cast<int32_t>(static_cast<uint32_t>(row.key));
    keys[2 * r + 1] = static_cast<int32_t>(static_cast<uint32_t>(row.key >> 32));
    steps[r] = row.step;
    for (size_t e = 0; e < row.changes.edits.size(); ++e) {
      edit_tokens[r * width + e] = row.changes.edits[e].token;
      edit_kinds[r * width + e] = row.changes.edits[e].kind;
      edit_values[r * width + e] = row.changes.edits[e].value;
    }
  }
  s.set_input("logit_rows", logit_rows);
  if (parts.changes) {
    s.set_input("rules", rules);
    s.set_input("edit_tokens", edit_tokens);
    s.set_input("edit_kinds", edit_kinds);
    s.set_input("edit_values", edit_values);
  }
  if (parts.draw) {
    s.set_input("sample_settings", settings);
    s.set_input("sample_keys", keys);
    s.set_input("sample_steps", steps);
  }
}

void Decoder::read(std::span<const Token> tokens, std::span<const Row> rows, const DecoderParts& wanted) {
  check(tokens);
  DecoderParts parts = wanted;
  for (const Row& row : rows) parts.edits = std::max(parts.edits, static_cast<int64_t>(row.changes.edits.size()));
  if (parts.edits > 0) parts.edits = power_of_two(std::max<int64_t>(parts.edits, 8));
  const int64_t capacity = power_of_two(std::max<int64_t>(static_cast<int64_t>(tokens.size()), 1));
  const int64_t room = power_of_two(std::max<int64_t>(static_cast<int64_t>(rows.size()), 1));
  Session& s = session(capacity, room, parts);
  set_tokens(s, tokens, capacity, parts.changes);
  set_rows(s, rows, room, parts);
  if (parts.changes) {
    std::vector<int32_t> count_rows(static_cast<size_t>(room), -1);
    for (size_t r = 0; r < rows.size(); ++r) count_rows[r] = tokens[static_cast<size_t>(rows[r].token)].segment;
    s.set_input("count_rows", count_rows);
  }
  Entry& entry = sessions_.at({capacity, room, parts});
  if (!block_table_.empty() && entry.table != table_version_) {
    s.set_input("block_table", block_table_);
    entry.table = table_version_;
  }
  s.run();
  last_ = &s;
  last_rows_ = rows.size();
}

void Decoder::read(std::span<const Token> tokens, int64_t rows) {
  std::vector<Row> wanted(static_cast<size_t>(rows));
  for (size_t r = 0; r < wanted.size(); ++r) wanted[r].token = static_cast<int32_t>(tokens.size() - wanted.size() + r);
  read(tokens, wanted, {});
}

namespace {

template <typename T>
std::vector<T> first_rows(const HostTensor& t, size_t rows) {
  const size_t width = t.shape().rank() > 1 ? static_cast<size_t>(t.shape()[1]) : 1;
  return {t.data<T>().begin(), t.data<T>().begin() + static_cast<std::ptrdiff_t>(rows * width)};
}

}  // namespace

std::vector<float> Decoder::logits() { return first_rows<float>(last_->output("logits"), last_rows_); }
std::vector<int32_t> Decoder::next() { return first_rows<int32_t>(last_->output("next"), last_rows_); }
std::vector<float> Decoder::facts() { return first_rows<float>(last_->output("facts"), last_rows_); }
Decoder::LogProbs Decoder::log_probs() {
  return {first_rows<int32_t>(last_->output("log_prob_ids"), last_rows_),
          first_rows<float>(last_->output("log_probs"), last_rows_)};
}

void Decoder::set_history(int64_t segment, std::span<const int32_t> slots) {
  std::ranges::copy(slots, block_table_.begin() + segment * options_.sequences * options_.context);
  ++table_version_;
}

}  // namespace hierarchos::generate
