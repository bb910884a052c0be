// hierarchos explain: what a model's programs do on a device.
#include "runtime/explain.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "commands.h"
#include "generate/decoder.h"
#include "models/load.h"
#include "peft/lora.h"
#include "runtime/device_choice.h"
#include "train/trainer.h"

namespace hierarchos::cli {
namespace {

struct Options {
  std::string model, device = "cpu", program = "decode";
  int64_t tokens = 0, context = 1024, lora_rank = 0;
  bool kernels = false, sampling = false;
};

// Nothing is computed, so the parameters' memory is there but not filled.
void run(const Options& o) {
  models::LoadedModel model = models::load(o.model);
  const auto backend = open_backend(o.device);
  models::choose_weight_types(model, *backend);
  auto store = std::make_shared<Storehouse>(*backend);
  const auto type = [&](const std::string& name, const Shape& shape) { return model.parameter_type(name, shape); };
  ExplainOptions explain_options;
  explain_options.kernels = o.kernels;
  if (o.program == "decode" || o.program == "prefill") {
    generate::DecoderOptions decoder_options;
    decoder_options.context = o.context;
    decoder_options.parameter_type = type;
    generate::Decoder decoder(model.description, store, decoder_options);
    const int64_t tokens = o.tokens > 0 ? o.tokens : o.program == "decode" ? 1 : 256;
    generate::DecoderParts parts;
    parts.draw = o.sampling;
    fmt::print("{}", explain(decoder.session(tokens, 1, parts), explain_options));
    return;
  }
  train::TrainerOptions trainer_options;
  trainer_options.tokens = o.tokens > 0 ? o.tokens : 512;
  if (o.lora_rank > 0) {
    peft::LoraConfig lora;
    lora.rank = o.lora_rank;
    lora.target_modules = model.description.lora_targets;
    trainer_options.train_base = false;
    trainer_options.lora = peft::lora_hook(lora);
  }
  train::Trainer trainer(model.description, store, trainer_options);
  fmt::print("{}", explain(o.program == "micro" ? trainer.micro_session() : trainer.apply_session(), explain_options));
}

}  // namespace

void add_explain(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("explain", "Print what a model's program does: layers, dispatches, memory, work");
  command->add_option("model", o->model, "folder of a Hugging Face package, or a .gguf file")->required();
  command->add_option("--device", o->device, "cpu or vulkan:N");
  command->add_option("--program", o->program, "decode, prefill, micro or apply")
      ->check(CLI::IsMember({"decode", "prefill", "micro", "apply"}));
  command->add_option("--tokens", o->tokens, "tokens a call")->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--context", o->context, "tokens of the cache")->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  command->add_option("--lora-rank", o->lora_rank,
                      "micro and apply: train LoRA adapters of this rank, not the whole model");
  command->add_flag("--sampling", o->sampling, "decode and prefill: draw a token, not the likeliest one");
  command->add_flag("--kernels", o->kernels, "list every kernel");
  command->footer(R"(Examples:
  hierarchos explain examples/demo-model
  hierarchos explain model.gguf --program prefill --tokens 512 --device vulkan:0 --kernels)");
  command->callback([o] { run(*o); });
}

}  // namespace hierarchos::cli
