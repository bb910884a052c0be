#include "generate/perplexity.h"

#include <algorithm>
#include <map>

#include "ops/loss/cross_entropy/cross_entropy.h"

namespace hierarchos::generate {
namespace {

constexpr int32_t kNotScored = -100;

// Reads a window in calls, and adds up the losses.
class Scorer {
 public:
  Scorer(const models::Description& description, std::shared_ptr<Storehouse> store, const PerplexityOptions& options)
      : description_(description), store_(std::move(store)), options_(options) {
    // Logits of a call take at most 64 MB or so. Some scalings of RoPE depend on the whole window's length.
    const bool whole = description.length_changes_rope();
    const int64_t fits = (int64_t{1} << 24) / std::max<int64_t>(description.vocab_size, 1);
    call_ = whole ? options.window : std::min(options.window, std::clamp<int64_t>(fits / 16 * 16, 16, 512));
  }

  // Scores those labels of the window that are not kNotScored; labels[i] follows ids[i].
  double score(std::span<const int32_t> ids, std::span<const int32_t> labels) {
    double sum = 0;
    for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(call_)) {
      const size_t count = std::min(ids.size() - at, static_cast<size_t>(call_));
      sum += call(ids.subspan(at, count), labels.subspan(at, count), static_cast<int32_t>(at));
    }
    return sum;
  }

 private:
  double call(std::span<const int32_t> ids, std::span<const int32_t> labels, int32_t first) {
    Session& s = session();
    const auto size = static_cast<size_t>(call_);
    std::vector<int32_t> padded(size, -1), positions(size, 0), segments(size, -1), slots(size, -1),
        wanted(size, kNotScored);
    for (size_t i = 0; i < ids.size(); ++i) {
      padded[i] = ids[i];
      positions[i] = slots[i] = first + static_cast<int32_t>(i);
      segments[i] = 0;
      wanted[i] = labels[i];
    }
    s.set_input("input_ids", padded);
    s.set_input("positions", positions);
    s.set_input("segments", segments);
    s.set_input("slots", slots);
    s.set_input("labels", wanted);
    s.run();
    double sum = 0;
    for (double v : s.output("loss").to_doubles()) sum += v;
    return sum;
  }

  Session& session() {
    if (session_) return *session_;
    auto graph = std::make_shared<Graph>();
    graph->set_compute_type(options_.compute);
    models::ModelOptions model;
    model.tokens = call_;
    model.cache = models::CacheKind::Contiguous;
    model.cache_slots = options_.window;
    model.parameter_type = options_.parameter_type;
    const models::ModelValues values = models::build(description_, *graph, model);
    const Value labels = graph->input("labels", Type(DType::I32, {call_}));
    graph->output("loss", ops::cross_entropy(values.logits, labels).loss);
    session_ = std::make_unique<Session>(Program::compile(graph, store_->backend()), store_);
    return *session_;
  }

  const models::Description& description_;
  std::shared_ptr<Storehouse> store_;
  const PerplexityOptions& options_;
  int64_t call_ = 0;
  std::unique_ptr<Session> session_;
};

}  // namespace

PerplexityResult perplexity(const models::Description& description, std::shared_ptr<Storehouse> store,
                            std::span<const int32_t> ids, const PerplexityOptions& options) {
  const int64_t window = options.window, stride = options.stride > 0 ? options.stride : window;
  if (window < 2) throw UserError("a window of {} tokens scores nothing: it needs at least 2", window);
  if (stride > window) throw UserError("a stride of {} would leave out tokens between windows of {}", stride, window);
  if (description.positions == models::Positions::Learned && window > description.max_positions)
    throw UserError("a window of {} tokens is longer than the {} positions that this model has learned", window,
                    description.max_positions);
  const auto tokens = static_cast<int64_t>(ids.size());
  if (tokens < 2) throw UserError("the text has {} tokens; it needs at least 2", tokens);
  for (int32_t id : ids)
    if (id < 0 || id >= description.vocab_size)
      throw UserError("token id {} is outside the vocabulary of {}", id, description.vocab_size);

  Scorer scorer(description, std::move(store), options);
  PerplexityResult result;
  result.tokens = tokens;
  int64_t done = 0;  // tokens that earlier windows had
  for (int64_t begin = 0; done < tokens; begin += stride) {
    const int64_t end = std::min(begin + window, tokens);
    // The last token of a window has no next one in it, so it is not read.
    std::vector<int32_t> labels;
    int64_t scored = 0;
    for (int64_t i = begin; i + 1 < end; ++i) {
      const bool wanted = i + 1 >= done;
      labels.push_back(wanted ? ids[static_cast<size_t>(i + 1)] : kNotScored);
      scored += wanted ? 1 : 0;
    }
    result.loss += scorer.score(ids.subspan(static_cast<size_t>(begin), labels.size()), labels);
    result.scored += scored;
    done = end;
    if (options.progress) options.progress(done, tokens);
  }
  result.loss /= static_cast<double>(result.scored);
  return result;
}

}  // namespace hierarchos::generate
