// Training as two programs: `micro` adds gradients of a batch to fp32 states, `apply` divides them by the number of
// scored tokens and updates the parameters.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/decoder.h"
#include "passes/autodiff.h"
#include "runtime/session.h"

namespace hierarchos::train {

// One row: labels as the framework gives them, not shifted (-100: not scored).
struct Row {
  std::vector<int32_t> input_ids, labels;
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;   // of tensors with two or more dimensions
  double max_grad_norm = 0;  // 0: no clipping
};

struct TrainerOptions {
  int64_t tokens = 0;  // capacity of a micro batch
  AdamWOptions adamw;
  DType compute = DType::F32;
  SaveSet save = SaveSet::Auto;
  bool train_base = true;  // all parameters; else only those that `lora` adds
  std::function<Type(const std::string&, const Shape&)> parameter_type;
  std::function<std::optional<models::LoraSpec>(const std::string&, int64_t, int64_t)> lora;
};

// Rows packed on the token axis: a segment a row, causal labels shifted to the token that predicts them.
struct PackedBatch {
  std::vector<int32_t> input_ids, positions, segments, labels;
  int64_t scored = 0;
};
// Throws UserError where the rows do not fit `tokens`, or an id or label is outside the vocabulary.
PackedBatch pack(const std::vector<Row>& rows, int64_t tokens, int64_t vocab_size);

// Graphs of the two programs. `micro` has outputs loss_sum and, when asked, logits; gradients are states "grad.NAME".
struct MicroGraph {
  std::shared_ptr<Graph> graph;
  std::vector<models::LoraParameters> lora;
  std::vector<std::string> trained;  // parameters that the loss reaches
};
MicroGraph micro_graph(const models::Description& description, const TrainerOptions& options);
// Parameters are states here, since they are updated; moments are states "adamw.m.NAME" and "adamw.v.NAME". Inputs
// hyper [4] (ops::adamw); outputs grad_norm and finite.
std::shared_ptr<Graph> apply_graph(const std::vector<std::pair<std::string, Shape>>& trained,
                                   const AdamWOptions& options);

class Trainer {
 public:
  // Trained parameters must be fp32 in `store` before the first step.
  Trainer(const models::Description& description, std::shared_ptr<Storehouse> store, const TrainerOptions& options);

  // Adds a batch's gradients; returns its summed loss.
  double micro(const std::vector<Row>& rows);
  int64_t scored() const { return scored_; }  // tokens since the last apply
  struct StepResult {
    double loss = 0;       // mean over the scored tokens of the step
    double grad_norm = 0;  // of the mean loss, before clipping
    bool finite = true;    // false: nothing was updated
  };
  // Updates, and clears the gradients.
  StepResult apply(double learning_rate);
  // Gradient of the summed loss so far; for a parameter of `trained()`.
  HostTensor gradient(const std::string& parameter) const { return store_->download("grad." + parameter); }
  void clear_gradients();

  const std::vector<std::string>& trained() const { return micro_graph_.trained; }
  const std::vector<models::LoraParameters>& lora() const { return micro_graph_.lora; }
  Session& micro_session() { return *micro_; }
  Session& apply_session();
  int64_t step() const { return step_; }

 private:
  models::Description description_;
  std::shared_ptr<Storehouse> store_;
  TrainerOptions options_;
  MicroGraph micro_graph_;
  std::vector<std::pair<std::string, Shape>> shapes_;
  std::unique_ptr<Session> micro_, apply_;
  int64_t scored_ = 0, step_ = 0;
  double loss_sum_ = 0;
};

}  // namespace hierarchos::train
