#include "models/registry.h"

namespace hierarchos::models {

void describe_falcon(ConfigReader& config, Description& d);
void describe_gemma(ConfigReader& config, Description& d);
void describe_gemma2(ConfigReader& config, Description& d);
void describe_gemma3_text(ConfigReader& config, Description& d);
void describe_gpt2(ConfigReader& config, Description& d);
void describe_gpt_neox(ConfigReader& config, Description& d);
void describe_granite(ConfigReader& config, Description& d);
void describe_llama(ConfigReader& config, Description& d);
void describe_mistral(ConfigReader& config, Description& d);
void describe_mixtral(ConfigReader& config, Description& d);
void describe_olmo2(ConfigReader& config, Description& d);
void describe_phi3(ConfigReader& config, Description& d);
void describe_qwen2(ConfigReader& config, Description& d);
void describe_qwen3(ConfigReader& config, Description& d);
void describe_stablelm(ConfigReader& config, Description& d);

const std::vector<Family>& families() {
  // One line an architecture.
  // clang-format off
  static const std::vector<Family> table = {
      {"falcon", describe_falcon},
      {"gemma", describe_gemma},
      {"gemma2", describe_gemma2},
      {"gemma3_text", describe_gemma3_text},
      {"gpt2", describe_gpt2},
      {"gpt_neox", describe_gpt_neox},
      {"granite", describe_granite},
      {"llama", describe_llama},
      {"mistral", describe_mistral},
      {"mixtral", describe_mixtral},
      {"olmo2", describe_olmo2},
      {"phi3", describe_phi3},
      {"qwen2", describe_qwen2},
      {"qwen3", describe_qwen3},
      {"stablelm", describe_stablelm},
  };
  // clang-format on
  return table;
}

const Family* find_family(std::string_view model_type) {
  for (const Family& f : families())
    if (f.model_type == model_type) return &f;
  return nullptr;
}

namespace {

// Classes with another head than the language model's compute something else from the same description.
void check_architectures(ConfigReader& reader) {
  const nlohmann::json* architectures = reader.find("architectures");
  if (!architectures) return;
  const auto language_model = [](const std::string& name) {
    for (const char* end : {"ForCausalLM", "LMHeadModel", "Model"})
      if (name.ends_with(end) && !name.ends_with("RewardModel")) return true;
    return false;
  };
  for (const nlohmann::json& entry : architectures->is_array() ? *architectures : nlohmann::json{*architectures}) {
    if (!entry.is_string()) reader.fail("architectures", "must be a list of class names");
    if (!language_model(entry.get<std::string>()))
      reader.unsupported("architectures", fmt::format("names {}, whose head is not a language model's", entry.dump()));
  }
}

void check(const ConfigReader& reader, const Description& d) {
  if (d.heads % d.kv_heads != 0)
    reader.fail("num_key_value_heads",
                fmt::format("({}) must divide the number of attention heads ({})", d.kv_heads, d.heads));
  // Products of sizes below are those of tensors, which must be addressable.
  constexpr int64_t kLimit = int64_t{1} << 40;
  for (auto [what, size] : {std::pair{"vocab_size", d.vocab_size},
                            {"intermediate_size", d.intermediate_size},
                            {"head_dim", d.heads * d.head_dim},
                            {"hidden_size", d.hidden_size}})
    if (size > kLimit / d.hidden_size)
      reader.fail(what, fmt::format("gives a matrix of {} × {} elements", size, d.hidden_size));
}

}  // namespace

Description describe(const nlohmann::json& config, const std::string& where) {
  ConfigReader reader(config, where);
  const std::optional<std::string> type = reader.text({"model_type"});
  if (!type) reader.fail("model_type", "is missing");
  const Family* family = find_family(*type);
  if (!family) {
    std::string known;
    for (const Family& f : families()) known += (known.empty() ? "" : ", ") + std::string(f.model_type);
    throw UnsupportedError("{}: model_type \"{}\" is not implemented; implemented are {}", where, *type, known);
  }
  reader.harmless_everywhere();
  check_architectures(reader);
  Description description;
  description.model_type = *type;
  family->describe(reader, description);
  reader.finish();
  check(reader, description);
  return description;
}

}  // namespace hierarchos::models
