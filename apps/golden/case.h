// A golden case: its files, its weights drawn from names, and the projections its gradients are compared by.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "tensor/host_tensor.h"
#include "train/trainer.h"

namespace hierarchos::golden {

// splitmix64 output i + 1 of the stream called `name`.
class Stream {
 public:
  explicit Stream(std::string_view name) : seed_(fnv1a64(name)) {}
  uint64_t bits(uint64_t i) const;
  double uniform(uint64_t i) const {  // [-1, 1), multiples of 2⁻²³
    return (static_cast<double>(bits(i) >> 40) - 8388608.0) / 8388608.0;
  }
  double sign(uint64_t i) const { return bits(i) >> 63 ? -1.0 : 1.0; }

 private:
  uint64_t seed_;
};

struct Gradient {
  bool zero = false;  // cancels exactly
  double norm = 0, err32 = 0;
  std::vector<double> proj;
};

struct CaseTensor {
  std::string name;
  HostTensor value;
  std::optional<Gradient> grad;
};

struct Generation {
  std::vector<int32_t> prompt, greedy, beam3;  // an empty list: not checked
  int64_t new_tokens = 0;
};

struct Case {
  std::string name;
  std::filesystem::path folder;
  nlohmann::json config, generation_config;
  std::vector<train::Row> rows;
  double loss = 0, loss_err32 = 0;
  double logits_err32 = 0;
  double grad_norm = 0;
  double adamw_lr = 0;
  std::vector<double> adamw_losses, adamw_losses32;
  std::optional<Generation> generate;
  std::vector<CaseTensor> tensors;  // judged: the model's, or the adapter's
  // Adapter cases: the adapter's configuration, and the weights of the base, which stay as they are.
  std::optional<nlohmann::json> adapter_config;
  std::vector<CaseTensor> base_tensors;

  // Median of the gradients' err32, which stands in for a small tensor's own where it is larger.
  double median_err32() const;
};

// Reads the case called `name` ("models/llama", "adapters/llama+lora") below `root` and draws its weights. Throws
// UnsupportedError for what is not implemented, DataError for malformed files.
Case read_case(const std::filesystem::path& root, const std::string& name);
// config.json, generation_config.json, model.safetensors; for an adapter also adapter_model.safetensors.
void write_package(const Case& c, const std::filesystem::path& folder);
// The case's `logits`, [rows, tokens, vocab].
HostTensor read_logits(const Case& c);

}  // namespace hierarchos::golden
