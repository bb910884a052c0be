#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "formats/package.h"

// tests/data/gguf: files that llama.cpp's converter wrote of packages whose numbers say where they belong
// (tools/gguf_cases.py).
namespace hierarchos::formats {
namespace {

const std::filesystem::path kCases = std::filesystem::path(HIERARCHOS_SOURCE_DIR) / "tests/data/gguf";

class GgufArchitectures : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const Package> package_ = Package::open(kCases / (GetParam() + std::string(".gguf")));
  nlohmann::json expected_ = read_json_file(kCases / (GetParam() + std::string(".json")));
};

TEST_P(GgufArchitectures, TensorsAreThePackages) {
  const std::string name = GetParam();
  std::vector<std::string> names;
  for (const auto& [tensor, shape] : expected_["tensors"].items()) names.push_back(tensor);
  int64_t t = 0;
  for (const std::string& tensor : names) {
    const double first = 1000.0 * static_cast<double>(t++);
    if (!package_->has(tensor)) {
      // Tied: the file has the embedding alone.
      EXPECT_EQ(tensor, "lm_head.weight");
      EXPECT_EQ(package_->config()["tie_word_embeddings"], true);
      continue;
    }
    const HostTensor ours = package_->tensor(tensor);
    const auto shape = expected_["tensors"][tensor].get<std::vector<int64_t>>();
    ASSERT_EQ(ours.shape(), Shape(shape)) << tensor;
    EXPECT_EQ(package_->info(tensor).shape, ours.shape());
    EXPECT_EQ(package_->info(tensor).dtype, ours.dtype());
    const std::vector<double> values = ours.to_doubles();
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], first + static_cast<double>(i)) << tensor << " " << i;
  }
  for (const std::string& ours : package_->names()) EXPECT_TRUE(expected_["tensors"].contains(ours)) << ours;
}

// Numbers come through fp32.
bool same(const nlohmann::json& a, const nlohmann::json& b) {
  if (a.is_number() && b.is_number())
    return std::abs(a.get<double>() - b.get<double>()) <= 1e-6 * std::abs(a.get<double>());
  return a == b;
}

TEST_P(GgufArchitectures, ConfigurationIsThePackages) {
  const nlohmann::json& theirs = expected_["config"];
  // Spelled otherwise there, or not in the file and without effect.
  for (const auto& [key, value] : package_->config().items()) {
    if (key == "pad_token_id") continue;
    // Written as 2048 whatever Falcon's package says.
    if (key == "max_position_embeddings" && theirs["model_type"] == "falcon") continue;
    if (!theirs.contains(key)) {
      EXPECT_TRUE(key.starts_with("rope") || key.starts_with("rotary") || key.starts_with("partial") ||
                  key == "n_inner" || key == "mlp_bias" || key == "original_max_position_embeddings" ||
                  key == "head_dim" || key.starts_with("hidden_act") || key == "attention_bias" ||
                  key == "num_key_value_heads")
          << key;
      continue;
    }
    if (theirs[key].is_null() && (key == "n_inner" || key == "head_dim" || key == "num_ln_in_parallel_attn")) continue;
    EXPECT_TRUE(same(value, theirs[key])) << key << " " << value << " " << theirs[key];
  }
  const auto& ours = package_->config();
  if (theirs.contains("rope_parameters") && ours.contains("rope_theta")) {
    const auto& rope = theirs["rope_parameters"];
    const auto& everywhere = rope.contains("full_attention") ? rope["full_attention"] : rope;
    EXPECT_TRUE(same(ours["rope_theta"], everywhere["rope_theta"]));
    if (rope.contains("partial_rotary_factor") && ours.contains("partial_rotary_factor")) {
      EXPECT_TRUE(same(ours["partial_rotary_factor"], rope["partial_rotary_factor"]));
    }
    if (ours.contains("rope_local_base_freq")) {
      EXPECT_TRUE(same(ours["rope_local_base_freq"], rope["sliding_attention"]["rope_theta"]));
    }
    for (const char* factors : {"short_factor", "long_factor"}) {
      if (!rope.contains(factors)) continue;
      EXPECT_EQ(ours["rope_scaling"][factors], rope[factors]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Converted, GgufArchitectures,
                         ::testing::Values("llama", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3",
                                           "gptneox", "olmo2", "granite", "stablelm", "falcon", "falcon_two_norms",
                                           "gpt2"));

}  // namespace
}  // namespace hierarchos::formats
