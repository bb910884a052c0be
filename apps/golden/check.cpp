#include "check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "generate/beam.h"
#include "generate/generator.h"
#include "subject.h"
#include "train/trainer.h"

namespace hierarchos::golden {
namespace {

double ratio_of(double error, double bound) {
  return std::isfinite(error) ? error / bound : std::numeric_limits<double>::infinity();
}

}  // namespace

Check check_logits(const Case& c, const std::vector<double>& ours) {
  const std::vector<double> truth = read_logits(c).to_doubles();
  Check check{"logits", std::numeric_limits<double>::infinity(), {}};
  if (truth.size() != ours.size()) {
    check.note = fmt::format("{} logits, expected {}", ours.size(), truth.size());
    return check;
  }
  double error = 0, norm = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    error += (ours[i] - truth[i]) * (ours[i] - truth[i]);
    norm += truth[i] * truth[i];
  }
  check.ratio = ratio_of(std::sqrt(error / norm), std::max(2 * c.logits_err32, 1e-6));
  return check;
}

Check check_loss(const Case& c, double ours) {
  const double bound = std::max(4 * c.loss_err32, 2e-6 * std::abs(c.loss));
  return {"loss", ratio_of(std::abs(ours - c.loss), bound), {}};
}

Check check_adamw_loss(const Case& c, size_t step, double ours) {
  const double truth = c.adamw_losses[step];
  const double bound = std::max(4 * std::abs(c.adamw_losses32[step] - truth), 2e-5 * std::abs(truth));
  return {fmt::format("AdamW loss {}", step), ratio_of(std::abs(ours - truth), bound), {}};
}

Check check_gradient(const Case& c, const CaseTensor& t, const std::vector<double>& gradient, double median) {
  Check check{"gradient " + t.name, 0, {}};
  double squares = 0;
  for (double g : gradient) squares += g * g;
  if (!t.grad) {
    if (!(squares == 0)) {
      check.ratio = std::numeric_limits<double>::infinity();
      check.note = "has a gradient where the reference has none";
    }
    return check;
  }
  if (gradient.empty()) {
    check.ratio = std::numeric_limits<double>::infinity();
    check.note = "has no gradient";
    return check;
  }
  if (t.grad->zero) {
    check.ratio = ratio_of(std::sqrt(squares), 1e-6 * c.grad_norm);
    return check;
  }
  double error = 0;
  for (size_t k = 0; k < t.grad->proj.size(); ++k) {
    const Stream stream(fmt::format("grad:{}#{}", t.name, k));
    double proj = 0;
    for (size_t i = 0; i < gradient.size(); ++i) proj += gradient[i] * stream.sign(i);
    error += (proj - t.grad->proj[k]) * (proj - t.grad->proj[k]);
  }
  error = std::sqrt(error / static_cast<double>(t.grad->proj.size())) / std::max(t.grad->norm, 1e-4 * c.grad_norm);
  const double err32 = gradient.size() < 64 ? std::max(t.grad->err32, median) : t.grad->err32;
  check.ratio = ratio_of(error, std::max(3 * err32, 1e-6));
  return check;
}

Check check_ids(const std::string& what, const std::vector<int32_t>& ours, const std::vector<int32_t>& truth) {
  Check check{what, 0, {}};
  if (ours == truth) return check;
  check.ratio = std::numeric_limits<double>::infinity();
  size_t i = 0;
  while (i < ours.size() && i < truth.size() && ours[i] == truth[i]) ++i;
  check.note = fmt::format("id {} is {}, expected {}", i, i < ours.size() ? std::to_string(ours[i]) : "missing",
                           i < truth.size() ? std::to_string(truth[i]) : "none");
  return check;
}

// Without a mask, the reference's generate() takes padding tokens in the prompt for absent, unless they may end a text.
std::vector<int32_t> without_padding(const std::vector<int32_t>& prompt, const models::LoadedModel& model) {
  const auto setting = [&](const char* key) {
    const nlohmann::json& own = model.generation_config;
    return own.is_object() && own.contains(key) ? own[key] : model.config.value(key, nlohmann::json());
  };
  const nlohmann::json pad = setting("pad_token_id"), end = setting("eos_token_id");
  const bool ends = end.is_array() ? std::ranges::find(end, pad) != end.end() : end == pad;
  if (!pad.is_number_integer() || ends) return prompt;
  std::vector<int32_t> kept;
  std::ranges::copy_if(prompt, std::back_inserter(kept), [&](int32_t id) { return id != pad.get<int64_t>(); });
  return kept.empty() ? prompt : kept;
}

std::vector<Check> run_case(const Case& c, Backend& backend, const std::filesystem::path& scratch,
                            const CheckOptions& options) {
  const Subject subject(c, scratch);
  const models::LoadedModel& model = subject.model();
  const models::Description& description = subject.description();
  const int64_t tokens = subject.tokens();
  std::vector<Check> checks;

  auto store = std::make_shared<Storehouse>(backend);
  models::upload_parameters(model, *store);
  for (const auto& [name, value] : subject.adapter()) {
    store->get(name, Type(DType::F32, value.shape()));
    store->upload(name, value);
  }

  if (options.forward) {
    const train::PackedBatch batch = train::pack(c.rows, tokens, description.vocab_size);
    Session session(Program::compile(subject.forward_graph(), backend), store);
    session.set_input("input_ids", batch.input_ids);
    session.set_input("positions", batch.positions);
    session.set_input("segments", batch.segments);
    if (options.debug) {
      if (const std::string report = session.run_checked(); !report.empty())
        checks.push_back({"forward, step by step", std::numeric_limits<double>::infinity(), report});
    } else {
      session.run();
    }
    checks.push_back(check_logits(c, session.output("logits").to_doubles()));
  }

  // Before training changes the weights.
  if (options.generate && c.generate) {
    const Generation& g = *c.generate;
    generate::GenerationSettings settings = generate::read_generation_settings(model.generation_config, model.config);
    settings.max_new_tokens = settings.min_new_tokens = g.new_tokens;
    settings.do_sample = false;
    const std::vector<int32_t> prompt = without_padding(g.prompt, model);
    const auto whole = [&](std::vector<int32_t> ids) {
      ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
      ids.insert(ids.begin(), g.prompt.begin(), g.prompt.end());
      return ids;
    };
    generate::DecoderOptions decoder_options;
    decoder_options.context = static_cast<int64_t>(g.prompt.size()) + g.new_tokens;
    if (!g.greedy.empty()) {
      generate::Decoder decoder(description, store, decoder_options);
      settings.num_beams = 1;
      checks.push_back(check_ids("greedy ids", whole(generate::greedy(decoder, prompt, settings)), g.greedy));
    }
    if (!g.beam3.empty()) {
      // Its caches have another shape, so they need a store of their own.
      auto beam_store = std::make_shared<Storehouse>(backend);
      models::upload_parameters(model, *beam_store);
      settings.num_beams = decoder_options.sequences = 3;
      decoder_options.branching = true;
      generate::Decoder decoder(description, beam_store, decoder_options);
      checks.push_back(check_ids("beam ids", whole(generate::beam_search(decoder, prompt, settings)), g.beam3));
    }
  }

  if (options.backward || options.adamw) {
    train::Trainer trainer(description, store, subject.trainer_options());
    double loss;
    if (options.debug) {
      const train::PackedBatch batch = train::pack(c.rows, tokens, description.vocab_size);
      Session& session = trainer.micro_session();
      session.set_input("input_ids", batch.input_ids);
      session.set_input("positions", batch.positions);
      session.set_input("segments", batch.segments);
      session.set_input("labels", batch.labels);
      if (const std::string report = session.run_checked(); !report.empty())
        checks.push_back({"training, step by step", std::numeric_limits<double>::infinity(), report});
      trainer.clear_gradients();
    }
    loss = trainer.micro(c.rows);
    const auto scored = static_cast<double>(trainer.scored());
    checks.push_back(check_loss(c, loss / scored));
    if (options.backward) {
      const double median = c.median_err32();
      for (const CaseTensor& t : c.tensors) {
        std::vector<double> gradient = subject.gradient(t.name, trainer.trained(), [&](const std::string& parameter) {
          return trainer.gradient(parameter).to_doubles();
        });
        for (double& g : gradient) g /= scored;
        checks.push_back(check_gradient(c, t, gradient, median));
      }
    }
    if (options.adamw) {
      for (size_t step = 0; step < c.adamw_losses.size(); ++step) {
        if (step > 0) {
          trainer.apply(c.adamw_lr);
          loss = trainer.micro(c.rows);
        }
        checks.push_back(check_adamw_loss(c, step, loss / scored));
      }
    }
  }
  return checks;
}

}  // namespace hierarchos::golden
