// The model of a case as the ordinary loaders give it, with its adapter if the case has one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "case.h"
#include "models/load.h"
#include "train/trainer.h"

namespace hierarchos::golden {

class Subject {
 public:
  // Writes the case's package to `scratch` and loads it.
  Subject(const Case& c, const std::filesystem::path& scratch);

  const models::LoadedModel& model() const { return model_; }
  const models::Description& description() const { return model_.description; }
  int64_t tokens() const { return tokens_; }  // of all rows
  // What is trained in the case: the whole model or the adapter.
  train::TrainerOptions trainer_options() const;
  std::shared_ptr<Graph> forward_graph() const;
  // The adapter's parameters; empty without one.
  const std::map<std::string, HostTensor>& adapter() const { return adapter_; }

  // Gradient of a tensor of the file, from the gradients of the graph's parameters. Empty where it has none.
  using GradientOf = std::function<std::vector<double>(const std::string& parameter)>;
  std::vector<double> gradient(const std::string& tensor, const std::vector<std::string>& trained,
                               const GradientOf& of) const;

 private:
  models::LoadedModel model_;
  std::map<std::string, HostTensor> adapter_;
  std::vector<models::LoraParameters> lora_;
  std::function<std::optional<models::LoraSpec>(const std::string&, int64_t, int64_t)> hook_;
  int64_t tokens_ = 0;
};

}  // namespace hierarchos::golden
