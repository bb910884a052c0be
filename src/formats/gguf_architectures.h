// What differs between GGUF's architectures, as data: names of tensors, and the configuration behind the metadata.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "formats/gguf_model.h"

namespace hierarchos::formats {

inline constexpr int64_t kMostParts = 1 << 20;  // heads, layers, experts, width: what is above cannot be meant

// The metadata below "ARCHITECTURE.". Remembers which keys were asked for: what is left over could change the numbers.
class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}
  bool has(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  double number(const std::string& key) const;
  double number(const std::string& key, double fallback) const { return has(key) ? number(key) : fallback; }
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  // True when the key's value is no other than this; refused by name otherwise.
  void expect(const std::string& key, int64_t value) const;
  void ignore(const std::string& key) const { used_.insert(key); }
  [[noreturn]] void refuse(const std::string& key) const;
  void refuse_others() const;  // keys that nobody asked for

  bool has_tensor(const std::string& name) const { return file_.entries().count(name) != 0; }
  const GgufFile& file() const { return file_; }

  // Of every architecture, read once.
  int64_t heads = 0, kv_heads = 0, hidden = 0, layers = 0, head_dim = 0, rotated = 0;
  double rope_theta = 10000;

 private:
  const GgufFile& file_;
  std::string prefix_;
  mutable std::set<std::string> used_;
};

// GGUF's name of a tensor without ".weight" or ".bias", and Hugging Face's. In a block's, both are below the block.
// Where Hugging Face's has {}, the tensor is a stack of such, numbered from 0.
struct GgufName {
  const char* gguf;
  const char* published;
  GgufTensor::Change change = GgufTensor::Change::None;
};

struct GgufArchitecture {
  std::string_view name;  // general.architecture
  const char* blocks;     // Hugging Face's name of block {}
  std::span<const GgufName> outside, block;
  bool norms_plus_one = false;
  void (*configure)(const GgufKeys& keys, nlohmann::json& config);
  const char* with = nullptr;  // only for files that have this tensor
};
std::span<const GgufArchitecture> gguf_architectures();

// Adds rope_scaling, when there is any. `rotated` is the number of elements of a head that are rotated.
void add_rope_scaling(const GgufKeys& keys, nlohmann::json& config);

}  // namespace hierarchos::formats
