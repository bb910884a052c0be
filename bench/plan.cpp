// How long an 80-layer Llama takes to plan and to bind. Widths are small: neither depends on them.
//
//   build/release/plan_bench [cpu | vulkan:N] [layers]
//
// The first round builds pipelines; the figures are of the fastest of the later rounds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"
#include "models/decoder.h"
#include "models/registry.h"
#include "runtime/session.h"
#include "train/trainer.h"

namespace {

using namespace hierarchos;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

models::Description description(int64_t layers) {
  const nlohmann::json config = {{"model_type", "llama"}, {"vocab_size", 256}, {"hidden_size", 64}, {"intermediate_size", 128},
                                 {"num_hidden_layers", layers}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                                 {"max_position_embeddings", 128}, {"rms_norm_eps", 1e-5}, {"rope_theta", 10000.0}};
  return models::describe(config);
}

std::shared_ptr<Graph> decode_graph(const models::Description& d) {
  auto graph = std::make_shared<Graph>();
  models::ModelOptions options;
  options.tokens = 1;
  options.cache = models::CacheKind::Contiguous;
  options.cache_slots = 128;
  graph->output("logits", models::build(d, *graph, options).logits);
  return graph;
}

std::shared_ptr<Graph> micro_graph(const models::Description& d) {
  train::TrainerOptions options;
  options.tokens = 32;
  return train::micro_graph(d, options).graph;
}

void measure(const char* name, Backend& backend, const models::Description& d, std::shared_ptr<Graph> (*make)(const models::Description&)) {
  auto store = std::make_shared<Storehouse>(backend);
  double build = 1e9, plan = 1e9, bind = 1e9;
  size_t dispatches = 0;
  for (int round = 0; round < 6; ++round) {
    const double t0 = now();
    auto graph = make(d);
    const double t1 = now();
    auto program = Program::compile(graph, backend);
    const double t2 = now();
    if (round == 0) Session(program, store);  // places the weights
    const double t3 = now();
    const Session session(program, store);
    const double t4 = now();
    dispatches = session.bound().program.steps.size();
    if (round == 0) continue;
    build = std::min(build, t1 - t0);
    plan = std::min(plan, t2 - t1);
    bind = std::min(bind, t4 - t3);
  }
  fmt::print("{:<8} {:>6} dispatches   graph and gradients {:7.1f} ms   plan {:7.1f} ms   bind and record {:7.1f} ms\n", name, dispatches, build * 1e3,
             plan * 1e3, bind * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  const models::Description d = description(argc > 2 ? std::atoll(argv[2]) : 80);
  std::unique_ptr<Backend> backend;
  if (device == "cpu") {
    backend = std::make_unique<CpuBackend>();
  } else {
    VulkanOptions options;
    options.device = std::atoi(device.c_str() + device.find(':') + 1);
    backend = create_vulkan_backend(options);
  }
  fmt::print("{} layers on {}\n", d.layers, backend->info().name);
  measure("decode", *backend, d, decode_graph);
  measure("micro", *backend, d, micro_graph);
  return 0;
}
