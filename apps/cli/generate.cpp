// hierarchos generate: continues prompts.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/os/terminal.h"
#include "commands.h"
#include "generate/beam.h"
#include "generate/generator.h"
#include "runner.h"
#include "settings_options.h"

namespace hierarchos::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  RunnerOptions runner;
  SettingsOptions settings;
  std::vector<std::string> prompts;
  std::string prompt_file;
  int64_t context = 0, log_probs = -1;
  bool json = false, no_echo = false, stats = false;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<std::string> read_prompts(const Options& o) {
  std::vector<std::string> prompts = o.prompts;
  if (!o.prompt_file.empty()) prompts.push_back(read_text(o.prompt_file));
  if (prompts.empty() && !is_terminal(StandardStream::In)) prompts.push_back(read_text("-"));
  if (prompts.empty())
    throw UserError("there is no prompt: give --prompt TEXT or --prompt-file FILE, or pipe a text in");
  return prompts;
}

// Room for the longest prompt and its continuation, within what the model was made for unless the user says otherwise.
int64_t context_for(const Options& o, const models::Description& d, const std::vector<generate::Request>& requests) {
  if (o.context > 0) return o.context;
  int64_t most = 0;
  for (const generate::Request& r : requests) {
    const auto length = static_cast<int64_t>(r.prompt.size());
    most = std::max(most, length + std::max<int64_t>(generate::most_new_tokens(r.settings, length), 1));
  }
  return d.max_positions > 0 ? std::min(most, d.max_positions) : most;
}

generate::Continuation search_beams(generate::Decoder& decoder, const generate::Request& request,
                                    const Tokenizer& tokenizer) {
  const std::vector<int32_t> all = generate::beam_search(decoder, request.prompt, request.settings);
  generate::Continuation c;
  c.ids.assign(all.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()), all.end());
  c.text = tokenizer.decode(c.ids);
  const bool ended = !c.ids.empty() && std::ranges::count(request.settings.eos_token_ids, c.ids.back()) > 0;
  c.reason = ended ? generate::FinishReason::EndToken : generate::FinishReason::Length;
  return c;
}

// Times of a run: the prompts are read until the first new token comes.
struct Times {
  Clock::time_point start = Clock::now();
  double first = 0, total = 0;
  size_t prompt_tokens = 0, new_tokens = 0;
  // 0 where there is nothing to measure.
  double prefill_rate() const { return first > 0 ? static_cast<double>(prompt_tokens) / first : 0; }
  double decode_rate() const {
    return new_tokens > 1 && total > first ? static_cast<double>(new_tokens - 1) / (total - first) : 0;
  }
};

nlohmann::ordered_json report(const std::string& prompt, const generate::Request& request,
                              const generate::Continuation& c, const Runner& runner) {
  nlohmann::ordered_json out = {{"prompt", prompt},
                                {"text", c.text},
                                {"finish_reason", generate::name_of(c.reason)},
                                {"prompt_ids", request.prompt},
                                {"ids", c.ids}};
  if (request.settings.do_sample) out["seed"] = request.settings.seed;
  if (request.log_probs >= 0) {
    const auto token = [&](int32_t id, double value) {
      return nlohmann::ordered_json{
          {"id", id}, {"token", runner.tokenizer->decode(std::span(&id, 1), false)}, {"log_prob", value}};
    };
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const generate::NewToken& t : c.tokens) {
      nlohmann::ordered_json entry = token(t.id, t.log_prob);
      entry["likeliest"] = nlohmann::ordered_json::array();
      for (const generate::TokenLogProb& l : t.likeliest) entry["likeliest"].push_back(token(l.id, l.value));
      list.push_back(std::move(entry));
    }
    out["log_probs"] = std::move(list);
  }
  return out;
}

void print_results(const Options& o, const std::vector<std::string>& prompts,
                   const std::vector<generate::Request>& requests, const std::vector<generate::Continuation>& results,
                   const Runner& runner, const Times& times) {
  if (!o.json) {
    // A single one was printed as it came.
    for (size_t i = 0; prompts.size() > 1 && i < prompts.size(); ++i)
      fmt::print("{}{}{}\n", i > 0 ? "\n" : "", o.no_echo ? "" : prompts[i], results[i].text);
    return;
  }
  nlohmann::ordered_json out;
  if (prompts.size() == 1) {
    out = report(prompts[0], requests[0], results[0], runner);
  } else {
    out["results"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < prompts.size(); ++i)
      out["results"].push_back(report(prompts[i], requests[i], results[i], runner));
  }
  out["device"] = runner.backend->info().name;
  out["seconds_to_first_token"] = times.first;
  out["tokens_per_second"] = times.decode_rate();
  print_json(out);
}

void run(const Options& o) {
  const std::vector<std::string> prompts = read_prompts(o);
  const Runner runner = load_runner(o.runner);
  std::vector<generate::Request> requests;
  for (const std::string& prompt : prompts) {
    generate::Request r;
    r.settings = make_settings(o.settings, runner, 64);
    r.prompt = runner.tokenizer->encode(prompt);
    if (r.prompt.empty()) throw UserError("the prompt is empty");
    r.log_probs = o.log_probs;
    requests.push_back(std::move(r));
  }
  const int64_t beams = requests[0].settings.num_beams;
  if (beams > 1 && o.log_probs >= 0) throw UserError("--log-probs does not go with beam search: leave out one of them");
  generate::DecoderOptions options;
  options.context = context_for(o, runner.model.description, requests);
  options.sequences = beams > 1 ? beams : std::min<int64_t>(static_cast<int64_t>(requests.size()), 16);
  options.branching = beams > 1;
  options.parameter_type = runner.parameter_type();
  generate::Decoder decoder(runner.model.description, runner.store, options);

  const bool stream = !o.json && prompts.size() == 1;
  InterruptGuard interrupt;
  Times times;
  std::vector<generate::Continuation> results;
  std::string echo = o.no_echo ? "" : prompts[0];
  const auto show = [&](const std::string& piece) {
    if (!stream) return;
    const std::string text = std::exchange(echo, "") + piece;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  if (beams > 1) {
    for (const generate::Request& r : requests) {
      results.push_back(search_beams(decoder, r, *runner.tokenizer));
      show(results.back().text);
      if (interrupt.interrupted()) throw Exit{kInterrupted};
    }
  } else {
    results = generate::generate(decoder, requests, runner.tokenizer.get(), [&](const generate::NewToken& token) {
      if (times.first == 0) times.first = seconds_since(times.start);
      show(token.text);
      return !interrupt.interrupted();
    });
  }
  times.total = seconds_since(times.start);
  if (beams > 1) times.first = times.total;  // all at once
  for (const generate::Request& r : requests) times.prompt_tokens += r.prompt.size();
  for (const generate::Continuation& c : results) times.new_tokens += c.ids.size();
  if (stream) fmt::print("\n");
  print_results(o, prompts, requests, results, runner, times);
  if (o.stats)
    fmt::print(stderr, "{} prompt tokens in {:.2f} s ({:.0f} a second), {} new ones at {:.1f} a second, on {}\n",
               times.prompt_tokens, times.first, times.prefill_rate(), times.new_tokens, times.decode_rate(),
               runner.backend->info().name);
  if (interrupt.interrupted()) throw Exit{kInterrupted};
}

}  // namespace

void add_generate(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "Continue a prompt");
  add_runner_options(*command, o->runner);
  command->add_option("-p,--prompt", o->prompts, "text to continue; several are continued side by side")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--prompt-file", o->prompt_file, "file with a text to continue; -: standard input")
      ->type_name("FILE");
  command->add_option("--context", o->context, "most tokens of prompt and continuation; the default is what they need")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24))
      ->type_name("N");
  command->add_flag("--no-echo", o->no_echo, "print the continuation only, not the prompt before it");
  command
      ->add_option("--log-probs", o->log_probs, "with --json: log-probabilities of the tokens and of the N likeliest")
      ->check(CLI::Range(0, 100))
      ->type_name("N");
  command->add_flag("--json", o->json, "print ids, text and speed as JSON instead");
  command->add_flag("--stats", o->stats, "say on stderr how fast it was");
  add_settings_options(*command, o->settings, /*beams=*/true);
  command->footer(R"(Examples:
  hierarchos generate -m examples/demo-model -p "Once upon a time" -n 60
  hierarchos generate -m model.gguf -p "Dear Sir" -t 0.8 --top-p 0.95 --seed 7
  echo "The sea is" | hierarchos generate -m model.gguf --json
  hierarchos generate -m model.gguf -p "Translate: chat" --num-beams 4 --no-echo

Without options about sampling, the package's generation_config.json decides; where it says nothing, the
likeliest token is taken. Ctrl-C stops and keeps what is there.)");
  command->callback([o] { run(*o); });
}

}  // namespace hierarchos::cli
