#include "models/load.h"

#include <algorithm>
#include <set>

#include "models/registry.h"
#include "quant/blocks.h"

namespace hierarchos::models {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

bool equal(const HostTensor& a, const HostTensor& b) {
  return a.dtype() == b.dtype() && a.storage() == b.storage() && a.shape() == b.shape() && std::ranges::equal(a.bytes(), b.bytes());
}

// Checkpoints of the bare model lack the prefix that the model with a head gives to all but the head.
class Names {
 public:
  Names(const formats::Package& package, std::string prefix) : prefix_(std::move(prefix)) {
    for (const std::string& name : package.names()) {
      present_.insert(name);
      with_prefix_ = with_prefix_ || name.starts_with(prefix_);
    }
  }
  std::string in_file(const std::string& parameter) const {
    if (!with_prefix_ && !prefix_.empty() && parameter.starts_with(prefix_)) return parameter.substr(prefix_.size());
    return parameter;
  }
  bool has(const std::string& name) const { return present_.count(name) != 0; }
  const std::set<std::string>& all() const { return present_; }

 private:
  std::string prefix_;
  std::set<std::string> present_;
  bool with_prefix_ = false;
};

}  // namespace

std::optional<std::string> LoadedModel::parameter_of(const std::string& tensor) const {
  for (const auto& [parameter, name] : files)
    if (name == tensor) return parameter;
  return std::nullopt;
}

Type LoadedModel::parameter_type(const std::string& name, const Shape& shape) const {
  auto at = storages.find(name);
  return at == storages.end() ? Type(DType::F32, shape) : Type(DType::F32, shape, at->second);
}

LoadedModel load(const std::filesystem::path& path) { return load(formats::Package::open(path)); }

LoadedModel load(std::shared_ptr<const formats::Package> package) {
  LoadedModel model;
  model.package = package;
  model.config = package->config();
  model.generation_config = package->generation_config();
  model.description = describe(model.config);
  Description& d = model.description;
  const Names names(*package, d.names.prefix);

  // What the configuration says of tying counts unless the file holds two different tables; then they are two.
  const std::string embedding = d.names.prefix + d.names.embedding + ".weight", head = d.names.head + ".weight";
  std::set<std::string> used;
  if (d.tied_head && names.has(head)) {
    if (!names.has(names.in_file(embedding))) {
      model.files[embedding] = head;
    } else if (equal(package->tensor(head), package->tensor(names.in_file(embedding)))) {
      used.insert(head);
    } else {
      d.tied_head = false;
    }
  }

  for (const TensorSpec& spec : expected_tensors(d)) {
    std::string& file = model.files[spec.name];
    if (file.empty()) file = names.in_file(spec.name);
    if (!names.has(file)) throw DataError("{}: tensor {} is missing", package->where(), file);
    const HostTensor tensor = package->tensor(file);
    if (!is_floating(tensor.dtype()))
      throw DataError("{}: tensor {} is of type {}, not floating point", package->where(), file, name_of(tensor.dtype()));
    if (tensor.shape() != spec.shape)
      throw DataError("{}: tensor {} has shape {}, but the configuration asks for {}", package->where(), file,
                      tensor.shape().to_string(), spec.shape.to_string());
    model.storages[spec.name] = tensor.storage();
    used.insert(file);
  }
  for (const std::string& name : names.all()) {
    if (used.count(name)) continue;
    const bool known = std::any_of(d.unused_tensors.begin(), d.unused_tensors.end(),
                                   [&](const std::string& pattern) { return matches(pattern, name) || matches(pattern, "." + name); });
    if (!known)
      throw DataError("{}: tensor {} is not known for {}; the weights may belong to another architecture", package->where(), name,
                      d.model_type);
  }
  return model;
}

void upload_parameters(const LoadedModel& model, Storehouse& store, KeepBlocks keep) {
  for (const TensorSpec& spec : expected_tensors(model.description)) {
    if (store.has(spec.name)) continue;
    const HostTensor tensor = model.package->tensor(model.files.at(spec.name));
    const bool plain = tensor.storage() == Storage::Plain;
    if (!plain && keep == KeepBlocks::Yes) {
      store.get(spec.name, Type(DType::F32, spec.shape, tensor.storage()));
      store.upload(spec.name, tensor);
    } else {
      store.get(spec.name, Type(DType::F32, spec.shape));
      store.upload(spec.name, !plain ? dequantized(tensor) : tensor.dtype() == DType::F32 ? tensor : tensor.cast(DType::F32));
    }
  }
}

}  // namespace hierarchos::models
