// LoRA adapters (Hu et al. 2021) in PEFT's form: which layers get one, how it starts, and its files.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/decoder.h"
#include "runtime/session.h"

namespace hierarchos::peft {

struct LoraConfig {
  int64_t rank = 8;
  double alpha = 16;
  bool rslora = false;  // scale by alpha/√rank rather than alpha/rank
  // Last parts of module names, as PEFT's list form matches them.
  std::vector<std::string> target_modules;
  std::string base_model;  // written to adapter_config.json
};

// Reads adapter_config.json. Throws UnsupportedError naming the setting that is not honoured.
LoraConfig read_config(const nlohmann::json& config, const std::string& where = "adapter_config.json");

// Throws UnsupportedError for a target that is no linear layer of the model's blocks (an embedding, the head, a
// misspelling).
void check_targets(const LoraConfig& config, const models::Description& description);

// The graph's parameters from an adapter file's tensors: A-matrices are stacked as the graph wants them. Throws
// DataError naming a tensor that is missing, misshapen or belongs to no layer of the model.
std::map<std::string, HostTensor> assemble(const std::vector<models::LoraParameters>& lora,
                                           const std::map<std::string, HostTensor>& tensors);
// Name of a tensor in an adapter file; which: 'A' or 'B'.
std::string tensor_name(const models::LoraParameters& lora, char which);

// For ModelOptions::lora. A module matches where its name is a target or ends with ".TARGET".
std::function<std::optional<models::LoraSpec>(const std::string& module, int64_t in, int64_t out)> lora_hook(
    const LoraConfig& config);

// Starting values in `store`: A uniform in ±1/√in as PEFT's (Kaiming, a = √5), drawn from streams named by seed and
// parameter; B zero, so that the adapted model begins as the base.
void initialize(const std::vector<models::LoraParameters>& lora, Storehouse& store, uint64_t seed);

// Writes adapter_model.safetensors and adapter_config.json. `transposed`: the base's layers store [in, out].
// The folder is made if need be.
void save(const LoraConfig& config, const std::vector<models::LoraParameters>& lora, const Storehouse& store,
          bool transposed, const std::filesystem::path& folder);

}  // namespace hierarchos::peft
