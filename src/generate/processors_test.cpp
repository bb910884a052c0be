// Against transformers (tools/generation_reference.py made the values).
#include "generate/processors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "backend/cpu/cpu_backend.h"
#include "base/json.h"
#include "base/rng.h"
#include "ops/sampling/count_tokens/count_tokens.h"
#include "runtime/session.h"

namespace hierarchos::generate {
namespace {

const nlohmann::json& reference() {
  static const nlohmann::json data = read_json_file(HIERARCHOS_TEST_DATA "/generation.json");
  return data;
}

double number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}
std::vector<double> numbers(const nlohmann::json& list) {
  std::vector<double> values;
  for (const nlohmann::json& v : list) values.push_back(number(v));
  return values;
}

struct Case {
  GenerationSettings settings;
  std::vector<int32_t> history;
  int64_t prompt = 0, max_length = 0;
  std::vector<double> logits;
};
Case read(const nlohmann::json& row) {
  nlohmann::json generation = row["settings"];
  generation["eos_token_id"] = reference()["eos_token_id"];
  return {read_generation_settings(generation, nullptr), row["history"].get<std::vector<int32_t>>(),
          row["prompt"].get<int64_t>(), row["max_length"].get<int64_t>(), numbers(row["logits"])};
}

void expect_scores(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(expected[i]) || std::isinf(got[i]))
      EXPECT_EQ(got[i], expected[i]) << "token " << i;
    else
      EXPECT_NEAR(got[i], expected[i], 2e-6 * std::max(1.0, std::abs(expected[i]))) << "token " << i;
  }
}

// What the programs do: tokens are counted, the logits changed, a token drawn.
class Device {
 public:
  explicit Device(const Case& c) : case_(c), vocab_(static_cast<int64_t>(c.logits.size())) {
    const auto tokens = static_cast<int64_t>(c.history.size());
    changes_ = logit_changes(c.settings, c.history, c.prompt, c.max_length);
    const auto edits = static_cast<int64_t>(changes_.edits.size());
    auto graph = std::make_shared<Graph>();
    const auto ints = [&](const char* name, Shape shape) { return graph->input(name, Type(DType::I32, shape)); };
    const auto floats = [&](const char* name, Shape shape) { return graph->input(name, Type(DType::F32, shape)); };
    const Value counts = graph->state("counts", Type(DType::I32, {1, vocab_}));
    const Value counted =
        ops::count_tokens(counts, ints("rows", {tokens}), ints("ids", {tokens}), ints("kinds", {tokens}));
    graph->update(counts, counted);
    const Value scores = ops::process_logits(floats("logits", {1, vocab_}), floats("rules", {1, ops::kLogitRules}),
                                             counted, ints("row", {1}), ints("edit_tokens", {1, edits}),
                                             ints("edit_kinds", {1, edits}), floats("edit_values", {1, edits}));
    const ops::SampleResult drawn =
        ops::sample(scores, floats("settings", {1, ops::kSampleSettings}), ints("key", {1, 2}), ints("step", {1}));
    graph->output("scores", scores);
    graph->output("id", drawn.ids);
    graph->output("facts", drawn.facts);
    session_ = std::make_unique<Session>(Program::compile(graph, backend_), std::make_shared<Storehouse>(backend_));
    set_inputs();
  }

  std::vector<double> scores() {
    draw(0, 0);
    return session_->output("scores").to_doubles();
  }
  struct Drawn {
    size_t id;
    double log_prob, left;
  };
  Drawn draw(uint64_t seed, int32_t step) {
    const uint64_t key = sample_key(seed);
    session_->set_input<int32_t>("key",
                                 {static_cast<int32_t>(static_cast<uint32_t>(key)), static_cast<int32_t>(key >> 32)});
    session_->set_input<int32_t>("step", {step});
    session_->run();
    const std::vector<double> facts = session_->output("facts").to_doubles();
    return {static_cast<size_t>(session_->output("id").to_doubles()[0]), facts[0], facts[1]};
  }

 private:
  void set_inputs() {
    std::vector<int32_t> kinds, tokens, edit_kinds;
    std::vector<float> values;
    for (size_t i = 0; i < case_.history.size(); ++i)
      kinds.push_back((static_cast<int64_t>(i) < case_.prompt ? ops::kPromptToken : ops::kNewToken) |
                      (i == 0 ? ops::kRestart : 0));
    for (const LogitChanges::Edit& e : changes_.edits) {
      tokens.push_back(e.token);
      edit_kinds.push_back(e.kind);
      values.push_back(e.value);
    }
    const std::array<float, ops::kSampleSettings> settings = sample_settings(case_.settings);
    session_->set_input("rows", std::vector<int32_t>(case_.history.size(), 0));
    session_->set_input("ids", case_.history);
    session_->set_input("kinds", kinds);
    session_->set_input("logits", std::vector<float>(case_.logits.begin(), case_.logits.end()));
    session_->set_input("rules", std::vector<float>(changes_.rules.begin(), changes_.rules.end()));
    session_->set_input("row", std::vector<int32_t>{0});
    session_->set_input("edit_tokens", tokens);
    session_->set_input("edit_kinds", edit_kinds);
    session_->set_input("edit_values", values);
    session_->set_input("settings", std::vector<float>(settings.begin(), settings.end()));
  }

  const Case& case_;
  int64_t vocab_;
  LogitChanges changes_;
  CpuBackend backend_;
  std::unique_ptr<Session> session_;
};

TEST(Processors, EqualTheReferencesOnHostAndDevice) {
  for (const nlohmann::json& row : reference()["processors"]) {
    SCOPED_TRACE(row["settings"].dump() + " after " + row["history"].dump());
    const Case c = read(row);
    const std::vector<double> expected = numbers(row["scores"]);
    std::vector<double> scores = c.logits;
    process_scores(c.settings, c.history, c.prompt, c.max_length, scores);
    expect_scores(scores, expected);
    expect_scores(Device(c).scores(), expected);
  }
}

TEST(Processors, DrawsFromTheReferencesDistribution) {
  for (const nlohmann::json& row : reference()["warpers"]) {
    SCOPED_TRACE(row["settings"].dump());
    const Case c = read(row);
    const std::vector<double> p = numbers(row["probabilities"]);
    const auto left = static_cast<double>(std::ranges::count_if(p, [](double v) { return v > 0; }));
    Device device(c);
    for (int32_t step = 0; step < 40; ++step) {
      const uint64_t seed = 1000 + static_cast<uint64_t>(step % 3);
      const double u = philox(sample_key(seed), static_cast<uint32_t>(step), 0, 0)[0] * 0x1p-32;
      size_t expected = 0;
      double sum = 0, edge = 1;
      for (size_t i = 0; i < p.size(); ++i) {
        edge = std::min(edge, std::abs(sum - u));
        if (sum <= u && p[i] > 0) expected = i;
        sum += p[i];
      }
      const Device::Drawn drawn = device.draw(seed, step);
      EXPECT_EQ(drawn.left, left);
      if (edge > 1e-6) {
        EXPECT_EQ(drawn.id, expected) << "step " << step << ", u " << u;
      }
      EXPECT_NEAR(drawn.log_prob, std::log(p[drawn.id]), 1e-5);
    }
  }
}

TEST(Processors, PresenceAndFrequency) {
  // OpenAI's API reference: logit[j] -= c[j] · frequency + (c[j] > 0) · presence, c over what was generated.
  Case c;
  c.settings.presence_penalty = 0.5;
  c.settings.frequency_penalty = 0.25;
  c.history = {0, 1, 2, 2, 2, 3};
  c.prompt = 2;
  c.max_length = 20;
  c.logits = {1, -1, 4, -4, 2};
  const std::vector<double> expected = {1, -1, 2.75, -4.75, 2};
  std::vector<double> scores = c.logits;
  process_scores(c.settings, c.history, c.prompt, c.max_length, scores);
  expect_scores(scores, expected);
  expect_scores(Device(c).scores(), expected);
}

TEST(Processors, StreamsBelongToSeedAndStep) {
  Case c;
  c.settings.do_sample = true;
  c.settings.top_k = 0;
  c.history = {0};
  c.prompt = 1;
  c.max_length = 20;
  c.logits.assign(1000, 0);
  Device device(c), again(c);
  std::vector<size_t> first, other_seed;
  for (int32_t step = 0; step < 50; ++step) {
    first.push_back(device.draw(1, step).id);
    other_seed.push_back(device.draw(2, step).id);
  }
  EXPECT_NE(first, other_seed);
  EXPECT_GT(std::set<size_t>(first.begin(), first.end()).size(), 40u);
  for (int32_t step = 49; step >= 0; --step) EXPECT_EQ(again.draw(1, step).id, first[static_cast<size_t>(step)]);
}

}  // namespace
}  // namespace hierarchos::generate
