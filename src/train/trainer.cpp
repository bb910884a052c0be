#include "train/trainer.h"

#include <cmath>

#include "ops/index/assign/assign.h"
#include "ops/loss/cross_entropy/cross_entropy.h"
#include "ops/optim/adamw/adamw.h"
#include "ops/pointwise/pointwise.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/views/views.h"

namespace hierarchos::train {

PackedBatch pack(const std::vector<Row>& rows, int64_t tokens, int64_t vocab_size) {
  PackedBatch batch;
  const auto size = static_cast<size_t>(tokens);
  batch.input_ids.assign(size, -1);
  batch.positions.assign(size, 0);
  batch.segments.assign(size, -1);
  batch.labels.assign(size, -100);
  size_t at = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const size_t length = row.input_ids.size();
    if (row.labels.size() != length) throw UserError("row {}: {} labels for {} tokens", r, row.labels.size(), length);
    if (at + length > size)
      throw UserError("row {}: the rows have more tokens than the {} of a micro batch", r, tokens);
    for (size_t i = 0; i < length; ++i, ++at) {
      const int32_t id = row.input_ids[i];
      if (id < 0 || id >= vocab_size)
        throw UserError("row {}: token id {} is outside the vocabulary of {}", r, id, vocab_size);
      batch.input_ids[at] = id;
      batch.positions[at] = static_cast<int32_t>(i);
      batch.segments[at] = static_cast<int32_t>(r);
      const int32_t label = i + 1 < length ? row.labels[i + 1] : -100;
      if (label != -100 && (label < 0 || label >= vocab_size))
        throw UserError("row {}: label {} is outside the vocabulary of {}", r, label, vocab_size);
      batch.labels[at] = label;
      batch.scored += label != -100;
    }
  }
  return batch;
}

MicroGraph micro_graph(const models::Description& description, const TrainerOptions& options) {
  MicroGraph result;
  result.graph = std::make_shared<Graph>();
  Graph& graph = *result.graph;
  graph.set_compute_type(options.compute);
  models::ModelOptions model;
  model.tokens = options.tokens;
  model.trainable = options.train_base;
  model.with_loss = true;
  model.parameter_type = options.parameter_type;
  model.lora = options.lora;
  const models::ModelValues values = models::build(description, graph, model);
  result.lora = values.lora;
  const Value labels = graph.input("labels", Type(DType::I32, {options.tokens}));
  Value loss = ops::sum(ops::cross_entropy(values.logits, labels).loss);
  if (values.aux_loss) {
    // It is added to the mean, so it counts once a scored token of the sum.
    const Value unscored = ops::full(graph, Shape{}, -100, DType::I32);
    const Value scored = ops::cast(ops::binary(PointwiseOp::Ne, labels, unscored), DType::F32);
    loss = ops::add(loss, ops::mul(*values.aux_loss, ops::sum(scored)));
  }
  graph.output("loss_sum", loss);

  std::vector<Value> wanted;
  std::vector<std::string> names;
  for (const Parameter& p : graph.parameters()) {
    if (!p.trainable) continue;
    if (p.type != Type(DType::F32, p.type.shape)) throw UserError("{}: only fp32 parameters are trained", p.name);
    wanted.push_back({&graph.root(), p.value});
    names.push_back(p.name);
  }
  const auto grads = gradients(loss, wanted, options.save);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i]) continue;  // the loss does not reach it: not touched by the optimizer either
    const Value state = graph.state("grad." + names[i], Type(DType::F32, wanted[i].shape()), /*checkpointed=*/false);
    graph.update(state, ops::add(state, ops::cast(*grads[i], DType::F32)));
    result.trained.push_back(names[i]);
  }
  return result;
}

std::shared_ptr<Graph> apply_graph(const std::vector<std::pair<std::string, Shape>>& trained,
                                   const AdamWOptions& options) {
  auto result = std::make_shared<Graph>();
  Graph& graph = *result;
  Value hyper = graph.input("hyper", Type(DType::F32, {4}));
  std::vector<Value> grads;
  Value squares = ops::full(graph, Shape{}, 0.0);
  for (const auto& [name, shape] : trained) {
    Scope scope(graph, name);
    grads.push_back(graph.state("grad." + name, Type(DType::F32, shape), /*checkpointed=*/false));
    squares = ops::add(squares, ops::sum(ops::square(grads.back())));
  }
  // A gradient that is not finite makes the sum of squares so.
  const Value finite = ops::unary(PointwiseOp::IsFinite, squares);
  const Value scale = ops::slice(hyper, 0, 3, 4);
  const Value norm = ops::mul(ops::sqrt(squares), ops::reshape(scale, Shape{}));
  graph.output("grad_norm", norm);
  graph.output("finite", finite);
  if (options.max_grad_norm > 0) {
    // As torch.nn.utils.clip_grad_norm_.
    const Value ratio = ops::div(ops::full(graph, Shape{}, options.max_grad_norm), ops::add(norm, 1e-6));
    const Value clip = ops::binary(PointwiseOp::Min, ratio, ops::full(graph, Shape{}, 1.0));
    hyper = ops::concat(
        {ops::slice(hyper, 0, 0, 3), ops::reshape(ops::mul(ops::reshape(scale, Shape{}), clip), Shape{1})}, 0);
  }
  const Value zero = ops::full(graph, Shape{}, 0.0);
  for (size_t i = 0; i < trained.size(); ++i) {
    const auto& [name, shape] = trained[i];
    Scope scope(graph, name);
    const Type type(DType::F32, shape);
    const Value param = graph.state(name, type, true, Reset::Keep);
    const Value m = graph.state("adamw.m." + name, type), v = graph.state("adamw.v." + name, type);
    const double decay = shape.rank() >= 2 ? options.weight_decay : 0.0;
    const ops::AdamWResult next =
        ops::adamw(param, grads[i], m, v, hyper, finite, options.beta1, options.beta2, options.eps, decay);
    graph.update(param, next.param);
    graph.update(m, next.m);
    graph.update(v, next.v);
    graph.update(grads[i], ops::assign(grads[i], ops::expand(zero, shape)));
  }
  return result;
}

Trainer::Trainer(const models::Description& description, std::shared_ptr<Storehouse> store,
                 const TrainerOptions& options)
    : description_(description),
      store_(std::move(store)),
      options_(options),
      micro_graph_(micro_graph(description, options)) {
  for (const std::string& name : micro_graph_.trained)
    for (const Parameter& p : micro_graph_.graph->parameters())
      if (p.name == name) shapes_.emplace_back(name, p.type.shape);
  micro_ = std::make_unique<Session>(Program::compile(micro_graph_.graph, store_->backend()), store_);
  clear_gradients();
}

Session& Trainer::apply_session() {
  if (!apply_)
    apply_ =
        std::make_unique<Session>(Program::compile(apply_graph(shapes_, options_.adamw), store_->backend()), store_);
  return *apply_;
}

void Trainer::clear_gradients() {
  for (const std::string& name : micro_graph_.trained) store_->zero("grad." + name);
  scored_ = 0;
  loss_sum_ = 0;
}

double Trainer::micro(const std::vector<Row>& rows) {
  if (description_.positions == models::Positions::Learned)
    for (const Row& row : rows)
      if (static_cast<int64_t>(row.input_ids.size()) > description_.max_positions)
        throw UserError("a row of {} tokens is longer than the {} positions that this model has learned",
                        row.input_ids.size(), description_.max_positions);
  const PackedBatch batch = pack(rows, options_.tokens, description_.vocab_size);
  micro_->set_input("input_ids", batch.input_ids);
  micro_->set_input("positions", batch.positions);
  micro_->set_input("segments", batch.segments);
  micro_->set_input("labels", batch.labels);
  micro_->run();
  const double loss = micro_->output("loss_sum").to_doubles()[0];
  scored_ += batch.scored;
  loss_sum_ += loss;
  return loss;
}

Trainer::StepResult Trainer::apply(double learning_rate) {
  if (scored_ == 0) throw UserError("the step has no scored token: every label is -100");
  Session& session = apply_session();
  const double t = static_cast<double>(step_ + 1);
  const std::vector<float> hyper = {static_cast<float>(learning_rate),
                                    static_cast<float>(1 - std::pow(options_.adamw.beta1, t)),
                                    static_cast<float>(std::sqrt(1 - std::pow(options_.adamw.beta2, t))),
                                    static_cast<float>(1.0 / static_cast<double>(scored_))};
  session.set_input("hyper", hyper);
  session.run();
  StepResult result;
  result.loss = loss_sum_ / static_cast<double>(scored_);
  result.grad_norm = session.output("grad_norm").to_doubles()[0];
  result.finite = session.output("finite").to_doubles()[0] != 0 && std::isfinite(result.loss);
  if (result.finite) ++step_;
  scored_ = 0;
  loss_sum_ = 0;
  return result;
}

}  // namespace hierarchos::train
