// hierarchos bench: how fast a model reads and writes here.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include "commands.h"
#include "generate/decoder.h"
#include "runner.h"

namespace hierarchos::cli {
namespace {

struct Options {
  RunnerOptions runner;
  int64_t prompt = 512, new_tokens = 128, repeats = 3;
  bool json = false;
};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Reads a prompt of arbitrary tokens in as few calls as generation does, then one token after another, each the
// likeliest after the one before.
class Round {
 public:
  Round(generate::Decoder& decoder, const Options& o) : decoder_(decoder), o_(o) {}

  double prefill() {
    const auto start = Clock::now();
    std::vector<generate::Decoder::Token> tokens;
    for (int64_t at = 0; at < o_.prompt;) {
      const int64_t some = decoder_.call_tokens(o_.prompt - at);
      tokens.clear();
      for (int64_t i = at; i < at + some; ++i) tokens.push_back(token(i * 7919 + 13, i));
      at += some;
      decoder_.read(tokens, at < o_.prompt ? int64_t{0} : int64_t{1});
    }
    if (o_.prompt > 0) next_ = decoder_.next()[0];
    return seconds_since(start);
  }

  double decode() {
    const auto start = Clock::now();
    for (int64_t i = 0; i < o_.new_tokens; ++i) {
      const generate::Decoder::Token one = token(next_, o_.prompt + i);
      decoder_.read({&one, 1}, int64_t{1});
      next_ = decoder_.next()[0];
    }
    return seconds_since(start);
  }

 private:
  generate::Decoder::Token token(int64_t id, int64_t position) const {
    generate::Decoder::Token t;
    t.id = static_cast<int32_t>(id % decoder_.description().vocab_size);
    t.position = static_cast<int32_t>(position);
    t.slot = decoder_.slot(0, position);
    return t;
  }

  generate::Decoder& decoder_;
  const Options& o_;
  int64_t next_ = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void run(const Options& o) {
  if (o.prompt + o.new_tokens < 1) throw UserError("there is nothing to measure: give --prompt or --new");
  const auto start = Clock::now();
  const Runner runner = load_runner(o.runner);
  const double load = seconds_since(start);
  const int64_t weights = runner.store->bytes();
  generate::DecoderOptions options;
  options.context = o.prompt + o.new_tokens;
  options.parameter_type = runner.parameter_type();
  generate::Decoder decoder(runner.model.description, runner.store, options);
  Round round(decoder, o);
  round.prefill();  // the first round compiles
  round.decode();
  std::vector<double> prefill, decode;
  for (int64_t r = 0; r < o.repeats; ++r) {
    const double read = round.prefill(), written = round.decode();
    if (o.prompt > 0) prefill.push_back(static_cast<double>(o.prompt) / read);
    if (o.new_tokens > 0) decode.push_back(static_cast<double>(o.new_tokens) / written);
  }
  if (!o.json) {
    if (!prefill.empty()) fmt::print("prefill of {} tokens: {:.1f} tokens/s\n", o.prompt, median(prefill));
    if (!decode.empty()) fmt::print("decode of {} tokens: {:.1f} tokens/s\n", o.new_tokens, median(decode));
    fmt::print("on {}; medians of {} rounds\n", runner.backend->info().name, o.repeats);
    return;
  }
  nlohmann::ordered_json report = {{"model", o.runner.model}, {"device", runner.backend->info().name},
                                   {"prompt", o.prompt},      {"new", o.new_tokens},
                                   {"load_seconds", load},    {"weight_bytes", weights}};
  if (!prefill.empty()) {
    report["prefill_tokens_per_s"] = median(prefill);
    report["prefill_rounds"] = prefill;
  }
  if (!decode.empty()) {
    report["decode_tokens_per_s"] = median(decode);
    report["decode_rounds"] = decode;
  }
  print_json(report);
}

}  // namespace

void add_bench(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a model reads a prompt and writes tokens");
  add_runner_options(*command, o->runner);
  command->add_option("-p,--prompt", o->prompt, "tokens to read; 0: do not measure that")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("-n,--new", o->new_tokens, "tokens to write behind them; 0: do not measure that")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--repeats", o->repeats, "rounds, after a first one that is not counted")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--json", o->json, "print all figures as JSON instead");
  command->footer(R"(Examples:
  hierarchos bench -m model.gguf
  hierarchos bench -m model.gguf --prompt 512 --new 128 --device cpu --threads 2 --json

Figures are medians over the rounds. Nothing else should run meanwhile.)");
  command->callback([o] { run(*o); });
}

}  // namespace hierarchos::cli
