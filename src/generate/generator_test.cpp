// On the demo model, against transformers (tools/generation_reference.py made the values).
#include "generate/generator.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "base/json.h"
#include "base/os/file.h"
#include "generate/beam.h"
#include "generate/perplexity.h"
#include "models/load.h"

namespace hierarchos::generate {
namespace {

using Ids = std::vector<int32_t>;

const nlohmann::json& reference() {
  static const nlohmann::json data = read_json_file(HIERARCHOS_TEST_DATA "/generation.json");
  return data;
}

class Generator : public testing::Test {
 protected:
  Generator()
      : model_(models::load(HIERARCHOS_SOURCE_DIR "/examples/demo-model")),
        tokenizer_(Tokenizer::from_package(*model_.package)) {}

  Decoder decoder(int64_t context, int64_t sequences = 1, bool branching = false, int64_t prefill = 256) {
    auto store = std::make_shared<Storehouse>(backend_);
    models::upload_parameters(model_, *store);
    DecoderOptions options;
    options.context = context;
    options.sequences = sequences;
    options.branching = branching;
    options.prefill_tokens = prefill;
    return {model_.description, store, options};
  }
  static GenerationSettings settings(const nlohmann::json& given) {
    nlohmann::json generation = given;
    if (!generation.contains("eos_token_id")) generation["eos_token_id"] = 0;
    return read_generation_settings(generation, nullptr);
  }
  Ids encode(const std::string& text) const { return tokenizer_->encode(text); }

  CpuBackend backend_;
  models::LoadedModel model_;
  std::shared_ptr<Tokenizer> tokenizer_;
};

TEST_F(Generator, IdsEqualTheReferences) {
  Decoder single = decoder(96), beams2 = decoder(64, 2, true), beams3 = decoder(64, 3, true),
          beams4 = decoder(64, 4, true);
  int compared = 0;
  for (const nlohmann::json& row : reference()["generate"]) {
    SCOPED_TRACE(row["settings"].dump() + " " + row["prompt"].dump());
    const GenerationSettings s = settings(row["settings"]);
    const Ids prompt = row["prompt"].get<Ids>(), expected = row["ids"].get<Ids>();
    if (s.num_beams > 1) {
      Decoder& d = s.num_beams == 2 ? beams2 : s.num_beams == 3 ? beams3 : beams4;
      const Ids all = beam_search(d, prompt, s);
      EXPECT_EQ(Ids(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()), expected);
    } else {
      if (row["gap"].is_number() && row["gap"].get<double>() < 1e-4) continue;
      const Request request{prompt, s};
      EXPECT_EQ(generate(single, std::span(&request, 1), tokenizer_.get())[0].ids, expected);
    }
    ++compared;
  }
  EXPECT_GT(compared, 60);
}

std::vector<Request> mixed(const std::function<Ids(const std::string&)>& encode) {
  std::vector<Request> requests;
  for (const char* text :
       {"Once upon a time", "The", "A girl named Sam had a very small red boat. She took the boat to the lake, and",
        "In the morning"}) {
    Request r;
    r.prompt = encode(text);
    r.settings.max_new_tokens = 8 + 5 * static_cast<int64_t>(requests.size());
    r.settings.eos_token_ids = {0};
    requests.push_back(r);
  }
  requests[1].settings.do_sample = true;
  requests[1].settings.seed = 5;
  requests[2].settings.do_sample = true;
  requests[2].settings.temperature = 1.5;
  requests[2].settings.top_p = 0.9;
  requests[3].settings.repetition_penalty = 1.5;
  return requests;
}

TEST_F(Generator, ABatchGivesWhatSingleRunsGive) {
  std::vector<Request> requests = mixed([&](const std::string& text) { return encode(text); });
  std::vector<Ids> alone;
  Decoder one = decoder(64);
  for (const Request& r : requests) alone.push_back(generate(one, std::span(&r, 1))[0].ids);
  for (const int64_t sequences : {4, 2, 1}) {
    for (const int64_t prefill : {256, 8}) {
      Decoder several = decoder(64, sequences, false, prefill);
      const std::vector<Continuation> together = generate(several, requests);
      for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(together[i].ids, alone[i]) << i << " of " << sequences;
      std::vector<Request> backwards(requests.rbegin(), requests.rend());
      const std::vector<Continuation> turned = generate(several, backwards);
      for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(turned[3 - i].ids, alone[i]) << i << " of " << sequences;
    }
  }
}

TEST_F(Generator, SeedsRepeat) {
  Decoder d = decoder(64);
  Request r;
  r.prompt = encode("Once upon a time");
  r.settings.do_sample = true;
  r.settings.temperature = 2;
  const auto run = [&](uint64_t seed) {
    r.settings.seed = seed;
    return generate(d, std::span(&r, 1))[0].ids;
  };
  const Ids first = run(1);
  EXPECT_NE(run(2), first);
  EXPECT_EQ(run(1), first);
}

TEST_F(Generator, LogProbsAreTheModels) {
  Decoder d = decoder(64);
  Request r;
  r.prompt = encode("Once upon a time");
  r.settings.max_new_tokens = 5;
  r.settings.repetition_penalty = 1.2;
  r.log_probs = 3;
  const Continuation c = generate(d, std::span(&r, 1))[0];
  ASSERT_EQ(c.tokens.size(), 5u);
  Ids history = r.prompt;
  for (const NewToken& token : c.tokens) {
    std::vector<Decoder::Token> tokens;
    for (size_t i = 0; i < history.size(); ++i)
      tokens.push_back({history[i], static_cast<int32_t>(i), 0, static_cast<int32_t>(i)});
    d.read(tokens, 1);
    const std::vector<float> logits = d.logits();
    double total = 0;
    for (float v : logits) total += std::exp(static_cast<double>(v));
    const auto log_prob = [&](int32_t id) {
      return static_cast<double>(logits[static_cast<size_t>(id)]) - std::log(total);
    };
    EXPECT_NEAR(token.log_prob, log_prob(token.id), 1e-4);
    ASSERT_EQ(token.likeliest.size(), 3u);
    EXPECT_EQ(token.likeliest[0].id, std::max_element(logits.begin(), logits.end()) - logits.begin());
    for (const TokenLogProb& t : token.likeliest) EXPECT_NEAR(t.value, log_prob(t.id), 1e-4);
    history.push_back(token.id);
  }
}

TEST_F(Generator, StopStringsEndTheText) {
  Decoder d = decoder(64);
  Request r;
  r.prompt = encode("Once upon a time");
  r.settings.max_new_tokens = 20;
  const std::string free = generate(d, std::span(&r, 1), tokenizer_.get())[0].text;
  ASSERT_GT(free.size(), 30u);
  const std::string stop = free.substr(13, 6);  // begins and ends inside tokens
  ASSERT_EQ(free.find(stop), 13u);
  r.settings.stop_strings = {"never there", stop};
  std::string streamed;
  const Continuation c = generate(d, std::span(&r, 1), tokenizer_.get(), [&](const NewToken& t) {
    streamed += t.text;
    return true;
  })[0];
  EXPECT_EQ(c.reason, FinishReason::StopString);
  EXPECT_EQ(c.text, free.substr(0, 13));
  EXPECT_EQ(streamed, c.text);
  EXPECT_THROW(generate(d, std::span(&r, 1)), UserError);
}

TEST_F(Generator, EndsForAReason) {
  Decoder d = decoder(16);
  Request r;
  r.prompt = encode("Once upon a time");
  r.settings.max_new_tokens = 3;
  EXPECT_EQ(generate(d, std::span(&r, 1))[0].reason, FinishReason::Length);
  r.settings.max_new_tokens = 100;
  const Continuation full = generate(d, std::span(&r, 1))[0];
  EXPECT_EQ(full.reason, FinishReason::Context);
  EXPECT_EQ(full.ids.size(), 16 - r.prompt.size());
  int seen = 0;
  const Continuation stopped = generate(d, std::span(&r, 1), nullptr, [&](const NewToken&) { return ++seen < 2; })[0];
  EXPECT_EQ(stopped.reason, FinishReason::Stopped);
  EXPECT_EQ(stopped.ids.size(), 2u);
  r.settings.eos_token_ids = {full.ids[4]};
  const Continuation ended = generate(d, std::span(&r, 1))[0];
  EXPECT_EQ(ended.reason, FinishReason::EndToken);
  EXPECT_EQ(ended.ids.back(), full.ids[4]);
}

TEST_F(Generator, RefusesPromptsThatDoNotFit) {
  Decoder d = decoder(16);
  Request r;
  r.prompt.assign(16, 5);
  const auto message = [&] {
    try {
      generate(d, std::span(&r, 1));
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message().find("16 tokens"), std::string::npos) << message();
  EXPECT_NE(message().find("shorten the prompt"), std::string::npos);
  r.prompt.clear();
  EXPECT_NE(message().find("empty"), std::string::npos);
  r.prompt = {1, 2, 99999};
  EXPECT_NE(message().find("99999"), std::string::npos);
  r.prompt = {1, 2, 3};
  r.settings.max_length = 3;
  EXPECT_NE(message().find("max_length"), std::string::npos);
}

TEST_F(Generator, PerplexityEqualsTheReferences) {
  const nlohmann::json& p = reference()["perplexity"];
  const std::string text = read_text_file(HIERARCHOS_SOURCE_DIR "/examples/demo-model/stories.txt");
  const Ids ids = encode(text.substr(0, p["characters"].get<size_t>()));
  ASSERT_EQ(ids.size(), p["ids"].get<size_t>());
  for (const nlohmann::json& row : p["cases"]) {
    SCOPED_TRACE(row.dump());
    auto store = std::make_shared<Storehouse>(backend_);
    models::upload_parameters(model_, *store);
    PerplexityOptions options;
    options.window = row["window"].get<int64_t>();
    options.stride = row["stride"].get<int64_t>();
    const PerplexityResult r =
        perplexity(model_.description, store, std::span(ids).first(row["tokens"].get<size_t>()), options);
    EXPECT_EQ(r.scored, row["scored"].get<int64_t>());
    EXPECT_NEAR(r.loss, row["loss"].get<double>(), 2e-5);
  }
}

// A conversation goes on where it was: only what is new is read.
TEST_F(Generator, KeepsWhatItHasRead) {
  Decoder d = decoder(64), fresh = decoder(64);
  Request r;
  r.prompt = encode("Once upon a time there was a");
  r.settings.max_new_tokens = 6;
  Ids history = r.prompt;
  for (int turn = 0; turn < 3; ++turn) {
    const Ids made = generate(d, std::span(&r, 1))[0].ids;
    EXPECT_EQ(d.kept(0).size(), r.prompt.size() + made.size() - 1);
    Decoder other = decoder(64);
    EXPECT_EQ(generate(other, std::span(&r, 1))[0].ids, made);
    history = r.prompt;
    history.insert(history.end(), made.begin(), made.end() - turn);
    r.prompt = history;
    r.prompt.push_back(5 + turn);
  }
}

}  // namespace
}  // namespace hierarchos::generate
