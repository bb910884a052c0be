#include "runtime/explain.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"
#include "models/decoder.h"
#include "models/registry.h"

namespace hierarchos {
namespace {

// SmolLM2-135M's layers (grouped heads, gated MLP, tied head), fewer and with a small vocabulary.
std::shared_ptr<Graph> decode_graph() {
  const nlohmann::json config = {{"model_type", "llama"}, {"vocab_size", 512}, {"hidden_size", 576}, {"intermediate_size", 1536},
                                 {"num_hidden_layers", 3}, {"num_attention_heads", 9}, {"num_key_value_heads", 3}, {"tie_word_embeddings", true},
                                 {"max_position_embeddings", 8192}, {"rms_norm_eps", 1e-5}, {"rope_theta", 100000.0}};
  auto graph = std::make_shared<Graph>();
  models::ModelOptions options;
  options.tokens = 1;
  options.cache = models::CacheKind::Contiguous;
  options.cache_slots = 512;
  graph->output("logits", models::build(models::describe(config), *graph, options).logits);
  return graph;
}

// norm; q, k, v; rotations and the append of v; append of k; attention and its combine; o with the residual; norm; gate × up;
// down with the residual.
constexpr int64_t kDependentInALayer = 10;

void expect_short_chains(Backend& backend) {
  const Session session(Program::compile(decode_graph(), backend), std::make_shared<Storehouse>(backend));
  int layers = 0;
  for (const ScopeWork& work : work_by_scope(session)) {
    if (work.scope.rfind("model.layers.", 0) != 0) continue;
    ++layers;
    EXPECT_LE(work.dependent, kDependentInALayer) << explain(session, {true});
  }
  EXPECT_EQ(layers, 3);
  // The layers' chains follow one another: nothing else adds to the critical path but the ends.
  EXPECT_LE(session.bound().critical_path, 3 * kDependentInALayer + 5) << explain(session);
}

TEST(Explain, ALlamaLayerDecodesInFewDependentDispatchesOnTheCpu) {
  CpuBackend backend;
  expect_short_chains(backend);
}

TEST(Explain, ALlamaLayerDecodesInFewDependentDispatchesOnVulkan) {
  for (const auto& d : enumerate_vulkan_devices()) {
    if (!d.usable) continue;
    VulkanOptions options;
    options.device = d.index;
    const auto backend = create_vulkan_backend(options);
    expect_short_chains(*backend);
    return;
  }
  GTEST_SKIP() << "no usable Vulkan device";
}

TEST(Explain, NamesLayersOperatorsAndMemory) {
  CpuBackend backend;
  const Session session(Program::compile(decode_graph(), backend), std::make_shared<Storehouse>(backend));
  const std::string text = explain(session);
  for (const char* part : {"3 × model.layers.0", "matmul", "attention", "model.layers.0", "barriers", "critical", "memory", "working memory"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace hierarchos
