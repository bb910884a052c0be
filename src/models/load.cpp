#include "models/load.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "models/registry.h"
#include "nn/linear.h"
#include "ops/index/gather/gather.h"
#include "ops/matmul/matmul/matmul.h"
#include "quant/blocks.h"
#include "quant/layout.h"

namespace hierarchos::models {
namespace {

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

bool equal(const HostTensor& a, const HostTensor& b) {
  return a.dtype() == b.dtype() && a.storage() == b.storage() && a.shape() == b.shape() &&
         std::ranges::equal(a.bytes(), b.bytes());
}

// Checkpoints of the bare model lack the prefix that the model with a head gives to all but the head.
class Names {
 public:
  Names(const formats::Package& package, const TensorNames& names) : prefix_(names.prefix), aliases_(names.aliases) {
    for (const std::string& name : package.names()) {
      present_.insert(name);
      with_prefix_ = with_prefix_ || name.starts_with(prefix_);
    }
  }
  std::string in_file(const std::string& parameter) const {
    const bool bare = !with_prefix_ && !prefix_.empty() && parameter.starts_with(prefix_);
    const std::string name = bare ? parameter.substr(prefix_.size()) : parameter;
    if (has(name)) return name;
    for (const auto& [theirs, ours] : aliases_) {
      const size_t at = name.find(ours);
      if (at == std::string::npos) continue;
      std::string other = name;
      other.replace(at, ours.size(), theirs);
      if (has(other)) return other;
    }
    return name;
  }
  bool has(const std::string& name) const { return present_.count(name) != 0; }
  const std::set<std::string>& all() const { return present_; }

 private:
  std::string prefix_;
  std::vector<std::pair<std::string, std::string>> aliases_;
  std::set<std::string> present_;
  bool with_prefix_ = false;
};

}  // namespace

std::optional<LoadedModel::Place> LoadedModel::place_of(const std::string& tensor) const {
  for (const auto& [parameter, names] : files) {
    const auto at = std::find(names.begin(), names.end(), tensor);
    if (at != names.end()) return Place{parameter, static_cast<size_t>(at - names.begin()), names.size()};
  }
  return std::nullopt;
}

HostTensor LoadedModel::tensor(const std::string& parameter) const {
  const std::vector<std::string>& names = files.at(parameter);
  if (names.size() == 1) return package->tensor(names[0]);
  HostTensor whole;
  int64_t at = 0;
  for (const std::string& name : names) {
    HostTensor part = package->tensor(name);
    part = part.storage() == Storage::Plain ? part.cast(DType::F32) : dequantized(part);
    if (at == 0) {
      Shape shape = part.shape();
      shape[0] *= static_cast<int64_t>(names.size());
      whole = HostTensor(DType::F32, shape);
    }
    std::ranges::copy(part.data<float>(), whole.mutable_data<float>().begin() + at);
    at += part.shape().elements();
  }
  return whole;
}

Type LoadedModel::parameter_type(const std::string& name, const Shape& shape) const {
  const auto value_of = [&](const auto& map, auto otherwise) {
    const auto at = map.find(name);
    return at == map.end() ? otherwise : at->second;
  };
  Type type(value_of(dtypes, DType::F32), shape, value_of(storages, Storage::Plain));
  type.layout = value_of(layouts, kRowMajor);
  return type;
}

LoadedModel load(const std::filesystem::path& path) { return load(formats::Package::open(path)); }

LoadedModel load(std::shared_ptr<const formats::Package> package) {
  LoadedModel model;
  model.package = package;
  model.config = package->config();
  model.generation_config = package->generation_config();
  model.description = describe(model.config);
  Description& d = model.description;
  const Names names(*package, d.names);

  // What the configuration says of tying counts unless the file holds two different tables; then they are two.
  const std::string embedding = d.names.prefix + d.names.embedding + ".weight",
                    head = names.in_file(d.names.head + ".weight");
  std::set<std::string> used;
  if (d.tied_head && names.has(head)) {
    if (!names.has(names.in_file(embedding))) {
      model.files[embedding] = {head};
    } else if (equal(package->tensor(head), package->tensor(names.in_file(embedding)))) {
      used.insert(head);
    } else {
      d.tied_head = false;
    }
  }

  for (const TensorSpec& spec : expected_tensors(d)) {
    std::vector<std::string>& files = model.files[spec.name];
    if (files.empty() && spec.parts.empty()) files = {names.in_file(spec.name)};
    for (const std::string& part : spec.parts) files.push_back(names.in_file(part));
    Shape shape = spec.shape;
    if (files.size() > 1) shape[0] /= static_cast<int64_t>(files.size());
    for (const std::string& file : files) {
      if (!names.has(file)) throw DataError("{}: tensor {} is missing", package->where(), file);
      const auto tensor = package->info(file);
      if (!is_floating(tensor.dtype))
        throw DataError("{}: tensor {} is of type {}, not floating point", package->where(), file,
                        name_of(tensor.dtype));
      if (tensor.shape != shape)
        throw DataError("{}: tensor {} has shape {}, but the configuration asks for {}", package->where(), file,
                        tensor.shape.to_string(), shape.to_string());
      model.storages[spec.name] = files.size() > 1 ? Storage::Plain : tensor.storage;
      used.insert(file);
    }
  }
  for (const std::string& name : names.all()) {
    if (used.count(name)) continue;
    const bool known = std::any_of(d.unused_tensors.begin(), d.unused_tensors.end(), [&](const std::string& pattern) {
      return matches(pattern, name) || matches(pattern, "." + name);
    });
    if (!known)
      throw DataError("{}: tensor {} is not known for {}; the weights may belong to another architecture",
                      package->where(), name, d.model_type);
  }
  return model;
}

namespace {

// Whether the device has kernels for a weight of that type: products for one token and for many, and look-ups.
bool reads(Backend& backend, const Type& type) {
  try {
    for (int64_t tokens : {int64_t{1}, int64_t{64}}) {
      auto graph = std::make_shared<Graph>();
      nn::LinearWeights w;
      w.weight = graph->parameter("weight", type);
      graph->output("product", nn::linear(graph->input("x", Type(DType::F32, {tokens, type.shape[1]})), w));
      graph->output("rows", ops::gather(w.weight, graph->input("ids", Type(DType::I32, {tokens}))));
      Program::compile(graph, backend);
    }
    return true;
  } catch (const UnsupportedError&) {
    return false;
  }
}

// Parameters that something else than a product or a look-up reads, by way of calls.
void find_other_uses(const Graph& graph, const Function& f, const std::map<ValueId, std::string>& names,
                     std::set<std::string>* found) {
  for (const Node& node : f.nodes) {
    std::map<ValueId, std::string> inside;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto name = names.find(node.inputs[i]);
      if (name == names.end()) continue;
      const auto at = static_cast<int>(i);
      if (node.op == &call_op()) {
        inside[graph.function(node.body).arguments[i]] = name->second;
      } else if (node.op == &ops::matmul_def()) {
        const ops::MatmulOperands operands = ops::matmul_operands(node.attrs);
        if (at != operands.w1 && at != operands.w2) found->insert(name->second);
      } else if (node.op != &ops::gather_def() || at != 0) {
        found->insert(name->second);
      }
    }
    if (!inside.empty()) find_other_uses(graph, graph.function(node.body), inside, found);
  }
}

// On the CPU: matrices whose rows can stand in groups.
void choose_for_cpu(LoadedModel& model) {
  Graph graph;
  ModelOptions options;
  options.tokens = 1;
  build(model.description, graph, options);
  std::map<ValueId, std::string> names;
  for (const Parameter& p : graph.parameters()) names[p.value] = p.name;
  std::set<std::string> others;
  find_other_uses(graph, graph.root(), names, &others);

  std::set<Storage> decoded;
  for (auto& [name, storage] : model.storages) {
    const std::vector<std::string>& files = model.files.at(name);
    const formats::TensorInfo info = model.package->info(files[0]);
    if (files.size() > 1 || info.shape.rank() != 2 || others.count(name)) {
      storage = Storage::Plain;
      continue;
    }
    DType dtype = DType::F32;
    if (storage != Storage::Plain && !has_rows16(dtype, storage)) {
      if (decoded.insert(storage).second)
        log_warning("{} blocks are decoded to bf16: the CPU's kernels do not read them", name_of(storage));
      storage = Storage::Plain;
      dtype = DType::BF16;
    } else if (storage == Storage::Plain && info.dtype == DType::BF16) {
      dtype = DType::BF16;
    }
    if (dtype != DType::F32) model.dtypes[name] = dtype;
    if (has_rows16(dtype, storage)) model.layouts[name] = kRows16;
  }
}

void decode_unreadable_blocks(LoadedModel& model, Backend& backend) {
  std::map<Storage, bool> readable;
  for (auto& [name, storage] : model.storages) {
    if (storage == Storage::Plain) continue;
    auto [at, fresh] = readable.try_emplace(storage, false);
    if (fresh) {
      const Shape shape = model.package->info(model.files.at(name)[0]).shape;
      at->second = shape.rank() == 2 && reads(backend, Type(DType::F32, shape, storage));
      if (!at->second)
        log_warning("{} blocks are decoded to fp32: the device's kernels do not read them", name_of(storage));
    }
    if (!at->second) storage = Storage::Plain;
  }
}

}  // namespace

void choose_weight_types(LoadedModel& model, Backend& backend) {
  if (backend.kind() == BackendKind::Cpu)
    choose_for_cpu(model);
  else
    decode_unreadable_blocks(model, backend);
}

void decode_all_blocks(LoadedModel& model) {
  for (auto& [name, storage] : model.storages) storage = Storage::Plain;
}

void upload_parameters(const LoadedModel& model, Storehouse& store) {
  const std::vector<TensorSpec> specs = expected_tensors(model.description);
  int64_t need = 0;
  for (const TensorSpec& spec : specs)
    if (!store.has(spec.name)) need += model.parameter_type(spec.name, spec.shape).bytes();
  const int64_t have = store.backend().info().memory_available;
  if (have > 0 && need > have)
    throw DeviceError(
        "the model's weights need {} MiB on the device, and {} MiB are free; use a model in smaller blocks or another "
        "device",
        (need >> 20) + 1, have >> 20);
  for (const TensorSpec& spec : specs) {
    if (store.has(spec.name)) continue;
    const HostTensor tensor = model.tensor(spec.name);
    const Type type = model.parameter_type(spec.name, spec.shape);
    store.get(spec.name, type);
    const bool decode = type.storage == Storage::Plain && tensor.storage() != Storage::Plain;
    const HostTensor plain = decode ? dequantized(tensor) : tensor;
    const bool as_it_is = type.storage != Storage::Plain || plain.dtype() == type.dtype;
    store.upload(spec.name, as_it_is ? plain : plain.cast(type.dtype));
  }
}

}  // namespace hierarchos::models
