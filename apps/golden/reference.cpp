#include <cmath>

#include "check.h"
#include "runtime/interpreter.h"
#include "runtime/ref_tensor.h"
#include "subject.h"

namespace hierarchos::golden {
namespace {

void set_batch(Interpreter& interpreter, const train::PackedBatch& batch) {
  const Shape shape{static_cast<int64_t>(batch.input_ids.size())};
  for (auto [name, values] : {std::pair{"input_ids", &batch.input_ids},
                              {"positions", &batch.positions},
                              {"segments", &batch.segments},
                              {"labels", &batch.labels}})
    interpreter.set(name, HostTensor::from<int32_t>(DType::I32, shape, *values));
}

}  // namespace

std::vector<Check> run_case_reference(const Case& c, const std::filesystem::path& scratch) {
  const Subject subject(c, scratch);
  const models::LoadedModel& model = subject.model();
  const models::Description& description = subject.description();
  std::vector<Check> checks;
  const train::PackedBatch batch = train::pack(c.rows, subject.tokens(), description.vocab_size);
  const auto scored = static_cast<double>(batch.scored);

  std::map<std::string, RefTensor> parameters;
  for (const models::TensorSpec& spec : models::expected_tensors(description))
    parameters[spec.name] = to_ref(model.tensor(spec.name));
  for (const auto& [name, value] : subject.adapter()) parameters[name] = to_ref(value);
  auto set_parameters = [&](Interpreter& interpreter) {
    for (const auto& [name, value] : parameters) interpreter.set(name, value);
  };

  {
    const auto graph = subject.forward_graph();
    Interpreter interpreter(*graph);
    set_parameters(interpreter);
    set_batch(interpreter, batch);
    interpreter.run();
    checks.push_back(check_logits(c, interpreter.output("logits").data));
  }

  const train::TrainerOptions options = subject.trainer_options();
  const train::MicroGraph micro = train::micro_graph(description, options);
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const std::string& name : micro.trained) shapes.emplace_back(name, parameters.at(name).type.shape);
  const auto apply = train::apply_graph(shapes, options.adamw);
  Interpreter optimizer(*apply);
  set_parameters(optimizer);
  for (size_t step = 0; step < c.adamw_losses.size(); ++step) {
    Interpreter interpreter(*micro.graph);
    set_parameters(interpreter);
    set_batch(interpreter, batch);
    interpreter.run();
    const double loss = interpreter.output("loss_sum").data[0] / scored;
    if (step == 0) {
      checks.push_back(check_loss(c, loss));
      for (const CaseTensor& t : c.tensors) {
        std::vector<double> gradient = subject.gradient(t.name, micro.trained, [&](const std::string& parameter) {
          return interpreter.value("grad." + parameter).data;
        });
        for (double& g : gradient) g /= scored;
        checks.push_back(check_gradient(c, t, gradient, c.median_err32()));
      }
    }
    checks.push_back(check_adamw_loss(c, step, loss));
    const double t = static_cast<double>(step + 1);
    RefTensor hyper{Type(DType::F32, {4}),
                    {c.adamw_lr, 1 - std::pow(options.adamw.beta1, t), std::sqrt(1 - std::pow(options.adamw.beta2, t)),
                     1 / scored}};
    optimizer.set("hyper", hyper);
    for (const std::string& name : micro.trained) optimizer.set("grad." + name, interpreter.value("grad." + name));
    optimizer.run();
    for (const std::string& name : micro.trained) parameters[name] = optimizer.value(name);
  }
  return checks;
}

}  // namespace hierarchos::golden
