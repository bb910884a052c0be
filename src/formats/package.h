// What a user points --model at: a folder as Hugging Face lays it out, or one GGUF file.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/safetensors.h"

namespace hierarchos::formats {

// Names and configuration are Hugging Face's, whatever the file. Errors name file, tensor and reason.
class Package {
 public:
  // A folder with config.json and model.safetensors or model.safetensors.index.json with its shards; or a .gguf file.
  static std::shared_ptr<const Package> open(const std::filesystem::path& path);

  const nlohmann::json& config() const { return config_; }
  const nlohmann::json& generation_config() const { return generation_config_; }  // null when there is none
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  // Blocks stay as they are in the file: dequantized() of quant/ decodes them.
  HostTensor tensor(const std::string& name) const;

  const std::string& where() const { return where_; }
  const GgufFile* gguf() const { return gguf_.get(); }  // null for a folder
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }  // of a folder: "tokenizer.json"

 private:
  void open_folder();
  void open_gguf();
  std::string where_;
  std::filesystem::path folder_;
  nlohmann::json config_, generation_config_;
  std::shared_ptr<const GgufFile> gguf_;
  struct Source {
    std::shared_ptr<const SafetensorsFile> file;  // null: the GGUF file
    std::string name;                             // in the file
    int64_t rotated_heads = 0;  // rows are ordered for rotating neighbours: put back, head by head
  };
  std::map<std::string, Source> tensors_;
};

}  // namespace hierarchos::formats
