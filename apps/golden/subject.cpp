#include "subject.h"

#include <algorithm>

#include "formats/safetensors.h"
#include "peft/lora.h"

namespace hierarchos::golden {

Subject::Subject(const Case& c, const std::filesystem::path& scratch) {
  write_package(c, scratch);
  model_ = models::load(scratch);
  for (const train::Row& row : c.rows) tokens_ += static_cast<int64_t>(row.input_ids.size());
  if (!c.adapter_config) return;
  hook_ = peft::lora_hook(peft::read_config(*c.adapter_config));
  Graph probe;
  models::ModelOptions options;
  options.tokens = 1;
  options.lora = hook_;
  lora_ = models::build(description(), probe, options).lora;
  adapter_ = peft::assemble(lora_, formats::read_safetensors(scratch / "adapter_model.safetensors"));
}

train::TrainerOptions Subject::trainer_options() const {
  train::TrainerOptions options;
  options.tokens = tokens_;
  options.adamw.weight_decay = 0.5;
  options.lora = hook_;
  options.train_base = !hook_;
  return options;
}

std::shared_ptr<Graph> Subject::forward_graph() const {
  auto graph = std::make_shared<Graph>();
  models::ModelOptions options;
  options.tokens = tokens_;
  options.lora = hook_;
  graph->output("logits", models::build(description(), *graph, options).logits);
  return graph;
}

std::vector<double> Subject::gradient(const std::string& tensor, const std::vector<std::string>& trained,
                                      const GradientOf& of) const {
  auto is_trained = [&](const std::string& name) {
    return std::find(trained.begin(), trained.end(), name) != trained.end();
  };
  if (!hook_) {
    const auto place = model_.place_of(tensor);
    if (!place || !is_trained(place->parameter)) return {};
    const std::vector<double> whole = of(place->parameter);
    const auto part = static_cast<std::ptrdiff_t>(whole.size() / place->count);
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(place->index) * part;
    return {begin, begin + part};
  }
  for (const models::LoraParameters& p : lora_) {
    if (tensor == peft::tensor_name(p, 'B') && is_trained(p.b)) return of(p.b);
    if (tensor == peft::tensor_name(p, 'A') && is_trained(p.a)) {
      const std::vector<double> stack = of(p.a);
      return {stack.begin() + p.a_begin * p.in, stack.begin() + p.a_end * p.in};
    }
  }
  return {};
}

}  // namespace hierarchos::golden
