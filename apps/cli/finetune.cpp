// hierarchos finetune: trains a LoRA adapter on a text file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "base/os/file.h"
#include "commands.h"
#include "models/load.h"
#include "peft/lora.h"
#include "runtime/device_choice.h"
#include "tokenizer/tokenizer.h"
#include "train/trainer.h"

namespace hierarchos::cli {
namespace {

struct Options {
  std::string model, data, device = "cpu", output = "adapter";
  peft::LoraConfig lora;
  double alpha = 0, learning_rate = 1e-4, weight_decay = 0, max_grad_norm = 1;
  int64_t steps = 20, sequence = 256, batch = 1;
  uint64_t seed = 0;
};

void run(const Options& o) {
  models::LoadedModel model = models::load(o.model);
  models::decode_all_blocks(model);
  // The text alone: what a model wants around a prompt does not belong between its pieces.
  const std::vector<int32_t> ids =
      Tokenizer::from_package(*model.package)->encode(read_text_file(o.data), /*add_special=*/false);
  const auto sequence = static_cast<size_t>(o.sequence);
  if (ids.size() < 2) throw UserError("{}: fewer than two tokens", o.data);

  const auto backend = open_backend(o.device);
  auto store = std::make_shared<Storehouse>(*backend);
  models::upload_parameters(model, *store);
  peft::LoraConfig lora = o.lora;
  lora.alpha = o.alpha > 0 ? o.alpha : 2 * static_cast<double>(lora.rank);
  if (lora.target_modules.empty()) lora.target_modules = model.description.lora_targets;
  lora.base_model = o.model;
  peft::check_targets(lora, model.description);

  train::TrainerOptions options;
  options.tokens = o.sequence * o.batch;
  options.train_base = false;
  options.adamw.weight_decay = o.weight_decay;
  options.adamw.max_grad_norm = o.max_grad_norm;
  options.lora = peft::lora_hook(lora);
  train::Trainer trainer(model.description, store, options);
  peft::initialize(trainer.lora(), *store, o.seed);

  // Rows follow one another in the text, and begin again at its end.
  size_t at = 0;
  for (int64_t step = 1; step <= o.steps; ++step) {
    std::vector<train::Row> rows;
    for (int64_t r = 0; r < o.batch; ++r) {
      if (at + 1 >= ids.size()) at = 0;
      const size_t end = std::min(at + sequence, ids.size());
      train::Row row;
      row.input_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(at),
                           ids.begin() + static_cast<std::ptrdiff_t>(end));
      row.labels = row.input_ids;
      rows.push_back(std::move(row));
      at = end;
    }
    trainer.micro(rows);
    const auto result = trainer.apply(o.learning_rate);
    if (!result.finite)
      throw DataError("step {}: the loss or a gradient is not finite; the weights are as after step {}", step,
                      step - 1);
    fmt::print("step {:4d}  loss {:.6f}  gradient norm {:.4f}\n", step, result.loss, result.grad_norm);
    std::fflush(stdout);
  }
  peft::save(lora, trainer.lora(), *store, model.description.transposed_linears, o.output);
  fmt::print("adapter saved in {}\n", o.output);
}

}  // namespace

void add_finetune(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("finetune", "Train a LoRA adapter on a text file");
  command->add_option("--model", o->model, "folder of a Hugging Face package, or a .gguf file")->required();
  command->add_option("--data", o->data, "text file")->required();
  command->add_option("--output", o->output, "folder for the adapter, in PEFT's form");
  command->add_option("--lora-rank", o->lora.rank, "rank of the adapters")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command->add_option("--lora-alpha", o->alpha, "scale times rank; twice the rank if not given")
      ->check(CLI::PositiveNumber);
  command->add_option("--lora-targets", o->lora.target_modules, "layers that get an adapter, such as q_proj v_proj");
  command->add_option("--steps", o->steps, "optimizer steps")->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--seq", o->sequence, "tokens a row")->check(CLI::Range(int64_t{2}, int64_t{1} << 20));
  command->add_option("--batch", o->batch, "rows a step")->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  command->add_option("--lr", o->learning_rate, "learning rate")->check(CLI::PositiveNumber);
  command->add_option("--weight-decay", o->weight_decay, "weight decay")->check(CLI::NonNegativeNumber);
  command->add_option("--max-grad-norm", o->max_grad_norm, "clip gradients to this norm; 0: never")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", o->seed, "seed of the adapter's start");
  command->add_option("--device", o->device, "cpu or vulkan:N");
  command->callback([o] { run(*o); });
}

}  // namespace hierarchos::cli
