// hierarchos generate: continues a prompt.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "generate/greedy.h"
#include "models/load.h"
#include "runtime/device_choice.h"
#include "tokenizer/tokenizer.h"

namespace hierarchos::cli {
namespace {

struct Options {
  std::string model, prompt, device = "cpu";
  int64_t max_new_tokens = 64;
  bool json = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(const Options& o) {
  models::LoadedModel model = models::load(o.model);
  const auto tokenizer = Tokenizer::from_package(*model.package);
  const std::vector<int32_t> prompt = tokenizer->encode(o.prompt);
  if (prompt.empty()) throw UserError("the prompt is empty");
  const auto backend = open_backend(o.device);
  models::decode_unreadable_blocks(model, *backend);
  auto store = std::make_shared<Storehouse>(*backend);
  models::upload_parameters(model, *store);

  generate::DecoderOptions decoder_options;
  decoder_options.context = static_cast<int64_t>(prompt.size()) + o.max_new_tokens;
  decoder_options.parameter_type = [&](const std::string& name, const Shape& shape) {
    return model.parameter_type(name, shape);
  };
  generate::Decoder decoder(model.description, store, decoder_options);
  // Greedy, plainly: of the package's own settings only the end tokens count.
  generate::GenerationSettings settings;
  settings.eos_token_ids = generate::read_generation_settings(model.generation_config, model.config).eos_token_ids;
  settings.max_new_tokens = o.max_new_tokens;

  const auto start = std::chrono::steady_clock::now();
  double first_token = 0;
  Tokenizer::Stream stream = tokenizer->stream();
  std::string text;
  auto show = [&](const std::string& piece) {
    text += piece;
    if (o.json) return;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  };
  if (!o.json) fmt::print("{}", o.prompt);
  const std::vector<int32_t> ids = generate::greedy(decoder, prompt, settings, [&](int32_t id) {
    if (first_token == 0) first_token = seconds_since(start);
    show(stream.push(id));
    return true;
  });
  show(stream.finish());
  const double total = seconds_since(start);
  const auto made = static_cast<double>(ids.size() - prompt.size());
  if (!o.json) {
    fmt::print("\n");
    return;
  }
  const nlohmann::ordered_json report = {
      {"prompt", o.prompt},
      {"text", text},
      {"prompt_ids", prompt},
      {"ids", std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()), ids.end())},
      {"device", backend->info().name},
      {"seconds_to_first_token", first_token},
      {"tokens_per_second", made > 1 ? (made - 1) / (total - first_token) : 0.0}};
  fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void add_generate(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "Continue a prompt, always with the likeliest token");
  command->add_option("--model", o->model, "folder of a Hugging Face package, or a .gguf file")->required();
  command->add_option("--prompt", o->prompt, "text to continue")->required();
  command->add_option("--max-new-tokens", o->max_new_tokens, "stop after this many")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--device", o->device, "cpu or vulkan:N");
  command->add_flag("--json", o->json, "print ids, text and speed as JSON instead");
  command->callback([o] { run(*o); });
}

}  // namespace hierarchos::cli
