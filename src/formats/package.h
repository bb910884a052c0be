// What a user points --model at: a folder as Hugging Face lays it out, or one GGUF file.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/gguf_model.h"
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
  // Blocks stay as they are in the file: dequantized() of quant/ decodes them. Refers to the mapped file, except those
  // tensors of GGUF files whose elements are put into Hugging Face's order.
  HostTensor tensor(const std::string& name) const;
  TensorInfo info(const std::string& name) const;  // reads no values; throws as tensor() does

  const std::string& where() const { return where_; }
  const GgufFile* gguf() const { return gguf_.get(); }                                  // null for a folder
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }  // of a folder: "tokenizer.json"

 private:
  struct Source {
    std::shared_ptr<const SafetensorsFile> file;  // null: the GGUF file
    GgufTensor tensor;                            // its name in the file, and what to do
  };
  void open_folder();
  void open_gguf();
  void add_shards(const std::filesystem::path& index_path);
  void add_shard(const std::filesystem::path& path);
  const Source& source(const std::string& name) const;

  std::string where_;
  std::filesystem::path folder_;
  nlohmann::json config_, generation_config_;
  std::shared_ptr<const GgufFile> gguf_;
  std::map<std::string, Source> tensors_;
};

}  // namespace hierarchos::formats
