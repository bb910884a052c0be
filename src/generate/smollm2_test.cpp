// The main job on a real model, if HIERARCHOS_SMOLLM2 names SmolLM2-135M-Instruct.Q4_1.gguf (tools/smollm2_reference.py
// says where it is): greedy ids against a float32 run of transformers on the same dequantised weights, and LoRA steps
// that must be the same on every device. On the CPU, and on vulkan:N where HIERARCHOS_SMOLLM2_VULKAN is N (a software
// rasteriser takes long).
#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"
#include "base/json.h"
#include "base/rng.h"
#include "generate/generator.h"
#include "models/load.h"
#include "tokenizer/tokenizer.h"
#include "train/trainer.h"

namespace hierarchos {
namespace {

const char* model_path() { return std::getenv("HIERARCHOS_SMOLLM2"); }

std::vector<std::unique_ptr<Backend>> devices() {
  std::vector<std::unique_ptr<Backend>> out;
  out.push_back(std::make_unique<CpuBackend>());
  if (const char* index = std::getenv("HIERARCHOS_SMOLLM2_VULKAN")) {
    VulkanOptions options;
    options.device = std::atoi(index);
    out.push_back(create_vulkan_backend(options));
  }
  return out;
}

TEST(SmolLm2, GreedyIdsEqualTheReferenceOnEveryDevice) {
  if (!model_path()) GTEST_SKIP() << "HIERARCHOS_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  const nlohmann::json reference = read_json_file(HIERARCHOS_TEST_DATA "/smollm2_greedy.json");
  std::vector<std::vector<std::vector<int32_t>>> all;
  for (const auto& backend : devices()) {
    SCOPED_TRACE(backend->info().name);
    auto store = std::make_shared<Storehouse>(*backend);
    models::LoadedModel model = models::load(model_path());
    models::choose_weight_types(model, *backend);
    models::upload_parameters(model, *store);
    generate::DecoderOptions options;
    options.context = 256;
    options.parameter_type = [&](const std::string& name, const Shape& shape) {
      return model.parameter_type(name, shape);
    };
    generate::Decoder decoder(model.description, store, options);
    generate::GenerationSettings settings;
    settings.max_new_tokens = settings.min_new_tokens = 64;
    all.emplace_back();
    for (const nlohmann::json& row : reference["prompts"]) {
      SCOPED_TRACE(row["prompt"].get<std::string>());
      const auto prompt = row["ids"].get<std::vector<int32_t>>(), expected = row["new"].get<std::vector<int32_t>>();
      const auto gaps = row["gaps"].get<std::vector<double>>();
      ASSERT_EQ(expected.size(), 64u);
      const std::vector<int32_t> ids = generate::greedy(decoder, prompt, settings);
      all.back().emplace_back(ids.begin() + static_cast<int64_t>(prompt.size()), ids.end());
      const std::vector<int32_t>& got = all.back().back();
      ASSERT_EQ(got.size(), 64u);
      for (size_t i = 0; i < 64 && gaps[i] >= 1e-3; ++i) ASSERT_EQ(got[i], expected[i]) << "new token " << i;
    }
  }
  for (size_t d = 1; d < all.size(); ++d) {
    for (size_t p = 0; p < all[d].size(); ++p) {
      const auto gaps = reference["prompts"][p]["gaps"].get<std::vector<double>>();
      for (size_t i = 0; i < 64 && gaps[i] >= 1e-3; ++i)
        ASSERT_EQ(all[d][p][i], all[0][p][i]) << "prompt " << p << ", new token " << i;
    }
  }
}

TEST(SmolLm2, LoraStepsFallAlikeOnEveryDevice) {
  if (!model_path()) GTEST_SKIP() << "HIERARCHOS_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  models::LoadedModel model = models::load(model_path());
  models::decode_all_blocks(model);
  const auto tokenizer = Tokenizer::from_package(*model.package);
  const std::vector<int32_t> ids = tokenizer->encode(
      "The harbour bell rang twice before dawn. Marta counted the boats, wrote the number in her book, and walked home "
      "along the wall "
      "with the lamp held low. Nobody in the village knew why she counted them, and she had never told anyone.");
  std::vector<std::vector<double>> losses;
  for (const auto& backend : devices()) {
    SCOPED_TRACE(backend->info().name);
    auto store = std::make_shared<Storehouse>(*backend);
    models::upload_parameters(model, *store);
    train::TrainerOptions options;
    options.tokens = 64;
    options.train_base = false;
    options.lora = [](const std::string& module, int64_t, int64_t) -> std::optional<models::LoraSpec> {
      if (module.ends_with("q_proj") || module.ends_with("v_proj")) return models::LoraSpec{8, 2.0};
      return std::nullopt;
    };
    train::Trainer trainer(model.description, store, options);
    for (const models::LoraParameters& l : trainer.lora()) {
      if (store->type(l.a).shape.elements() == 0) continue;
      HostTensor a(DType::F32, store->type(l.a).shape);
      uint64_t state = fnv1a64(l.a);
      for (float& v : a.mutable_data<float>())
        v = static_cast<float>(0.05 * (static_cast<double>(splitmix64(state) >> 40) / (1 << 23) - 1));
      store->upload(l.a, a);  // B starts at zero
    }
    losses.emplace_back();
    for (int step = 0; step < 20; ++step) {
      trainer.micro({{ids, ids}});
      const auto result = trainer.apply(5e-4);
      ASSERT_TRUE(result.finite);
      losses.back().push_back(result.loss);
    }
    EXPECT_LT(losses.back().back(), losses.back().front() - 0.2);
  }
  for (size_t d = 1; d < losses.size(); ++d) {
    for (size_t s = 0; s < losses[d].size(); ++s) EXPECT_NEAR(losses[d][s], losses[0][s], 1e-4) << "step " << s;
  }
}

}  // namespace
}  // namespace hierarchos
