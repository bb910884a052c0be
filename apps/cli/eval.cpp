// hierarchos eval: perplexity of a text.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "base/os/terminal.h"
#include "commands.h"
#include "generate/perplexity.h"
#include "runner.h"

namespace hierarchos::cli {
namespace {

struct Options {
  RunnerOptions runner;
  std::string data;
  int64_t window = 0, stride = 0, max_tokens = 0;
  bool json = false, no_special = false;
};

void run(const Options& o) {
  const std::string text = read_text(o.data);
  const Runner runner = load_runner(o.runner);
  std::vector<int32_t> ids = runner.tokenizer->encode(text, !o.no_special);
  if (o.max_tokens > 0 && static_cast<int64_t>(ids.size()) > o.max_tokens)
    ids.resize(static_cast<size_t>(o.max_tokens));
  const int64_t made_for = runner.model.description.max_positions;
  generate::PerplexityOptions options;
  options.window = o.window > 0 ? o.window : made_for > 0 ? std::min<int64_t>(made_for, 1024) : 1024;
  options.stride = o.stride;
  options.parameter_type = runner.parameter_type();
  InterruptGuard interrupt;
  Progress progress("Scoring " + (o.data == "-" ? std::string("standard input") : o.data));
  options.progress = [&](int64_t done, int64_t tokens) {
    if (interrupt.interrupted()) throw Exit{kInterrupted};
    progress.note(fmt::format("{} of {} tokens", done, tokens));
  };
  const generate::PerplexityResult r = generate::perplexity(runner.model.description, runner.store, ids, options);
  const double perplexity = std::exp(r.loss);
  if (o.json) {
    print_json({{"perplexity", perplexity},
                {"loss", r.loss},
                {"scored_tokens", r.scored},
                {"tokens", r.tokens},
                {"window", options.window},
                {"stride", options.stride > 0 ? options.stride : options.window},
                {"device", runner.backend->info().name}});
    return;
  }
  fmt::print("perplexity {:.4f} (loss {:.6f} over {} of {} tokens, windows of {})\n", perplexity, r.loss, r.scored,
             r.tokens, options.window);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("eval", "Measure how well a model foresees a text (perplexity)");
  add_runner_options(*command, o->runner);
  command->add_option("-d,--data", o->data, "text file; -: standard input")->required()->type_name("FILE");
  command
      ->add_option("--window", o->window,
                   "tokens that are read together; the default is what the model was made for, at most 1024")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24))
      ->type_name("N");
  command
      ->add_option("--stride", o->stride,
                   "tokens from a window's beginning to the next's; the default is the window: none overlap")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->type_name("N");
  command->add_option("--max-tokens", o->max_tokens, "only the beginning of the text")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command->add_flag("--no-special-tokens", o->no_special, "without the tokens that the model wants around a text");
  command->add_flag("--json", o->json, "print all figures as JSON instead");
  command->footer(R"(Examples:
  hierarchos eval -m examples/demo-model -d examples/demo-model/stories.txt
  hierarchos eval -m model.gguf -d wiki.test.raw --window 1024 --stride 512 --json

Each window scores the tokens that the one before did not have, given the others of the window; the first
token of a text, and of each window without overlap, is not scored.)");
  command->callback([o] { run(*o); });
}

}  // namespace hierarchos::cli
