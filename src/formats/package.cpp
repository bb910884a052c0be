#include "formats/package.h"

#include <set>

#include "base/json.h"
#include "base/os/file.h"
#include "formats/shown.h"

namespace hierarchos::formats {

std::shared_ptr<const Package> Package::open(const std::filesystem::path& path) {
  auto package = std::make_shared<Package>();
  package->where_ = path.string();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    package->folder_ = path;
    package->open_folder();
  } else if (std::filesystem::exists(path, error)) {
    if (path.extension() == ".safetensors")
      throw UserError("{}: give the folder that has this file and its config.json", path.string());
    package->folder_ = path.parent_path();
    package->gguf_ = GgufFile::open(path);
    package->open_gguf();
  } else {
    throw UserError("{}: there is no such file or folder", path.string());
  }
  return package;
}

void Package::open_folder() {
  if (!file_exists(file("config.json")))
    throw UserError("{}: no config.json here; --model takes a Hugging Face model folder or a .gguf file", where_);
  config_ = read_json_file(file("config.json"));
  if (!config_.is_object()) throw DataError("{}: this is no object", file("config.json").string());
  if (file_exists(file("generation_config.json"))) {
    generation_config_ = read_json_file(file("generation_config.json"));
    if (!generation_config_.is_object())
      throw DataError("{}: this is no object", file("generation_config.json").string());
  }
  if (file_exists(file("model.safetensors"))) return add_shard(file("model.safetensors"));
  if (file_exists(file("model.safetensors.index.json"))) return add_shards(file("model.safetensors.index.json"));
  if (file_exists(file("pytorch_model.bin")) || file_exists(file("pytorch_model.bin.index.json")))
    throw UnsupportedError("{}: pytorch_model.bin is not read; save the model as safetensors", where_);
  throw UserError("{}: neither model.safetensors nor model.safetensors.index.json is here", where_);
}

void Package::add_shard(const std::filesystem::path& path) {
  const auto shard = SafetensorsFile::open(path);
  for (const auto& [name, entry] : shard->entries())
    if (auto [at, fresh] = tensors_.emplace(name, Source{shard, {.name = name}}); !fresh)
      throw DataError("{}: tensor {} is in {} too", shard->where(), shown(name), at->second.file->where());
}

void Package::add_shards(const std::filesystem::path& index_path) {
  const nlohmann::json index = read_json_file(index_path);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw DataError("{}: there is no weight_map", index_path.string());
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string()) throw DataError("{}: the file of tensor {} is no string", index_path.string(), shown(name));
    const auto text = shard.get<std::string>();
    // A plain name: a path could lead out of the folder.
    if (text.empty() || text.find_first_of(std::string_view("/\\:\0", 4)) != std::string::npos || text[0] == '.')
      throw DataError("{}: tensor {} is said to be in \"{}\", which is no file of the folder", index_path.string(),
                      shown(name), shown(text));
    shards[text].insert(name);
  }
  for (const auto& [shard, names] : shards) {
    if (!file_exists(file(shard))) throw UserError("{}: the shard {} is missing", where_, shard);
    add_shard(file(shard));
    for (const std::string& name : names) {
      auto found = tensors_.find(name);
      if (found == tensors_.end() || found->second.file->where() != file(shard).string())
        throw DataError("{}: tensor {} is missing; model.safetensors.index.json says it is here", file(shard).string(),
                        shown(name));
    }
  }
  for (const auto& [name, source] : tensors_)
    if (!index["weight_map"].contains(name))
      throw DataError("{}: tensor {} is not in model.safetensors.index.json", source.file->where(), shown(name));
}

void Package::open_gguf() {
  GgufModel model = gguf_model(*gguf_);
  config_ = std::move(model.config);
  generation_config_ = std::move(model.generation_config);
  for (auto& [name, tensor] : model.tensors) tensors_.emplace(name, Source{nullptr, std::move(tensor)});
}

std::vector<std::string> Package::names() const {
  std::vector<std::string> out;
  out.reserve(tensors_.size());
  for (const auto& [name, source] : tensors_) out.push_back(name);
  return out;
}

const Package::Source& Package::source(const std::string& name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) throw UserError("{}: there is no tensor {}", where_, name);
  return found->second;
}

TensorInfo Package::info(const std::string& name) const {
  const Source& s = source(name);
  if (!s.file) {
    gguf_->tensor(s.tensor.name);  // refuses types that are not read
    return published_info(gguf_->entries().at(s.tensor.name), s.tensor);
  }
  // Tensors of safetensors files that happen to lie unaligned are copied here; none that we or the reference write do.
  const HostTensor tensor = s.file->tensor(s.tensor.name);
  return {tensor.dtype(), tensor.storage(), tensor.shape()};
}

HostTensor Package::tensor(const std::string& name) const {
  const Source& s = source(name);
  if (s.file) return s.file->tensor(s.tensor.name);
  try {
    return as_published(gguf_->tensor(s.tensor.name), s.tensor);
  } catch (const DataError& e) {
    throw DataError("{}: tensor {}: {}", where_, s.tensor.name, e.what());
  }
}

}  // namespace hierarchos::formats
