// The precision policy: products and attention in bf16, everything that must stay fp32 in fp32.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "backend/cpu/cpu_backend.h"
#include "base/rng.h"
#include "models/registry.h"
#include "ops/attention/attention/attention.h"
#include "ops/matmul/matmul/matmul.h"
#include "train/trainer.h"

namespace hierarchos {
namespace {

models::Description tiny() {
  return models::describe(nlohmann::json{{"model_type", "llama"}, {"vocab_size", 40}, {"hidden_size", 32}, {"intermediate_size", 48},
                                         {"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                                         {"max_position_embeddings", 64}, {"rms_norm_eps", 1e-5}, {"rope_theta", 10000.0}});
}

struct Result {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;
};

Result run(DType compute) {
  CpuBackend backend;
  auto store = std::make_shared<Storehouse>(backend);
  for (const models::TensorSpec& spec : models::expected_tensors(tiny())) {
    HostTensor t(DType::F32, spec.shape);
    uint64_t state = fnv1a64(spec.name);
    const double scale = spec.shape.rank() == 1 ? 0.1 : 0.8 / std::sqrt(static_cast<double>(spec.shape.back()));
    for (float& v : t.mutable_data<float>())
      v = static_cast<float>((spec.shape.rank() == 1 ? 1 : 0) + scale * (static_cast<double>(splitmix64(state) >> 40) / (1 << 23) - 1));
    store->upload(spec.name, t);
  }
  train::TrainerOptions options;
  options.tokens = 16;
  options.compute = compute;
  train::Trainer trainer(tiny(), store, options);
  const std::vector<int32_t> ids = {3, 17, 5, 22, 9, 31, 8, 2, 14, 25, 6, 11};
  Result result;
  result.loss = trainer.micro({{ids, ids}}) / static_cast<double>(trainer.scored());
  for (const std::string& name : trainer.trained()) result.gradients[name] = trainer.gradient(name).to_doubles();
  return result;
}

TEST(Precision, Bf16TrainingFollowsFp32) {
  const Result full = run(DType::F32), low = run(DType::BF16);
  EXPECT_NEAR(low.loss, full.loss, 0.01 * full.loss);
  EXPECT_NE(low.loss, full.loss);
  for (const auto& [name, g] : full.gradients) {
    double dot = 0, a = 0, b = 0;
    for (size_t i = 0; i < g.size(); ++i) {
      dot += g[i] * low.gradients.at(name)[i];
      a += g[i] * g[i];
      b += low.gradients.at(name)[i] * low.gradients.at(name)[i];
    }
    // bf16 has eight bits: a relative error of a percent or two turns the direction by its square.
    EXPECT_GT(dot / std::sqrt(a * b), 0.998) << name;
  }
}

TEST(Precision, ProductsAndAttentionAreLowTheRestIsNot) {
  train::TrainerOptions options;
  options.tokens = 16;
  options.compute = DType::BF16;
  const train::MicroGraph micro = train::micro_graph(tiny(), options);
  const Graph& graph = *micro.graph;
  int products = 0;
  for (FunctionId id = 0; id < graph.function_count(); ++id) {
    const Function& f = graph.function(id);
    for (const Node& node : f.nodes) {
      if (node.op == &ops::matmul_def()) {
        ++products;
        EXPECT_EQ(f.type_of(node.inputs[0]).dtype, DType::BF16) << node.scope;
        EXPECT_EQ(f.type_of(node.inputs[1]).dtype, DType::BF16) << node.scope;
      }
      if (node.op == &ops::attention_def()) {
        EXPECT_EQ(f.type_of(node.inputs[0]).dtype, DType::BF16);
        EXPECT_EQ(f.type_of(node.outputs[1]).dtype, DType::F32);  // the log-sum-exp
      }
      if (node.op->name == "cross_entropy") {
        EXPECT_EQ(f.type_of(node.inputs[0]).dtype, DType::F32);
      }
      if (node.op->name == "rms_norm") {
        EXPECT_EQ(f.type_of(node.outputs[1]).dtype, DType::F32);
      }
    }
  }
  EXPECT_GT(products, 10);
  for (const State& s : graph.states()) EXPECT_EQ(s.type.dtype, DType::F32) << s.name;
}

}  // namespace
}  // namespace hierarchos
