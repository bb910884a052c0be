#include "peft/lora.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/os/file.h"
#include "base/rng.h"
#include "formats/safetensors.h"
#include "formats/shown.h"
#include "models/config_reader.h"

namespace hierarchos::peft {
namespace {

bool targets(const std::vector<std::string>& names, const std::string& module) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& t) { return module == t || module.ends_with("." + t); });
}

HostTensor rows_of(const HostTensor& stack, int64_t begin, int64_t end) {
  const int64_t columns = stack.shape()[1];
  HostTensor part(DType::F32, {end - begin, columns});
  const auto from =
      stack.data<float>().subspan(static_cast<size_t>(begin * columns), static_cast<size_t>((end - begin) * columns));
  std::copy(from.begin(), from.end(), part.mutable_data<float>().begin());
  return part;
}

}  // namespace

std::function<std::optional<models::LoraSpec>(const std::string&, int64_t, int64_t)> lora_hook(
    const LoraConfig& config) {
  if (config.rank < 1) throw UserError("the rank of a LoRA must be at least 1, not {}", config.rank);
  if (config.target_modules.empty()) throw UserError("a LoRA needs target modules");
  const double rank = static_cast<double>(config.rank);
  const models::LoraSpec spec{config.rank, config.alpha / (config.rslora ? std::sqrt(rank) : rank)};
  return [names = config.target_modules, spec](const std::string& module, int64_t, int64_t) {
    return targets(names, module) ? std::optional(spec) : std::nullopt;
  };
}

LoraConfig read_config(const nlohmann::json& json, const std::string& where) {
  models::ConfigReader reader(json, where);
  if (!reader.has("peft_type")) reader.fail("peft_type", "is missing; this is no adapter_config.json of PEFT");
  reader.only("peft_type", "LORA", "only LoRA adapters are implemented");
  LoraConfig config;
  config.rank = reader.size({"r"}, 8);
  config.alpha = reader.number("lora_alpha", 8.0);
  config.rslora = reader.flag("use_rslora", false);
  config.base_model = reader.text("base_model_name_or_path", "");
  const nlohmann::json* modules = reader.find("target_modules");
  if (!modules || !modules->is_array())
    reader.unsupported("target_modules", "must be a list of module names; patterns are not implemented");
  for (const nlohmann::json& name : *modules) {
    if (!name.is_string()) reader.fail("target_modules", "must be a list of module names");
    config.target_modules.push_back(name.get<std::string>());
  }
  const nlohmann::json none = nlohmann::json::object(), empty = nlohmann::json::array();
  for (const char* key : {"use_dora", "use_qalora", "lora_bias", "ensure_weight_tying", "use_bdlora"})
    reader.only(key, false, "it is not implemented");
  reader.only("bias", "none", "trained biases are not implemented");
  for (const char* key : {"rank_pattern", "alpha_pattern"}) reader.only(key, none, "it is not implemented");
  reader.only("target_parameters", empty, "it is not implemented");
  // The weights of a finished adapter do not depend on how it began, was trained or was stored.
  if (const nlohmann::json* init = reader.find("init_lora_weights"); init && init->is_string()) {
    const auto how = init->get<std::string>();
    if (how != "gaussian" && how != "orthogonal" && how != "eva" && how != "lora_ga")
      reader.unsupported(
          "init_lora_weights",
          fmt::format("is {}: such adapters belong to base weights that PEFT changes when it loads them; "
                      "convert the adapter to an ordinary LoRA (save_pretrained with "
                      "path_initial_model_for_weight_conversion)",
                      formats::shown(how)));
  }
  reader.harmless({"task_type", "inference_mode", "lora_dropout", "fan_in_fan_out", "peft_version", "revision",
                   "auto_mapping", "megatron_core", "loftq_config", "qalora_group_size"});
  reader.finish();
  return config;
}

std::string tensor_name(const models::LoraParameters& lora, char which) {
  return fmt::format("base_model.model.{}.lora_{}.weight", lora.module, which);
}

void check_targets(const LoraConfig& config, const models::Description& description) {
  Graph probe;
  models::ModelOptions options;
  options.tokens = 1;
  options.lora = lora_hook(config);
  const auto lora = models::build(description, probe, options).lora;
  for (const std::string& target : config.target_modules)
    if (std::none_of(lora.begin(), lora.end(),
                     [&](const models::LoraParameters& p) { return targets({target}, p.module); }))
      throw UnsupportedError("LoRA on {}: it is no linear layer of this model's blocks", target);
}

std::map<std::string, HostTensor> assemble(const std::vector<models::LoraParameters>& lora,
                                           const std::map<std::string, HostTensor>& tensors) {
  std::map<std::string, HostTensor> parameters;
  std::set<std::string> used;
  const auto take = [&](const std::string& name, const Shape& shape) {
    auto at = tensors.find(name);
    if (at == tensors.end()) throw DataError("adapter: tensor {} is missing", name);
    if (at->second.shape() != shape)
      throw DataError("adapter: tensor {} has shape {}, but the configuration asks for {}", name,
                      at->second.shape().to_string(), shape.to_string());
    used.insert(name);
    return at->second.cast(DType::F32);
  };
  std::map<std::string, int64_t> rows;  // of each stack
  for (const models::LoraParameters& p : lora) rows[p.a] = std::max(rows[p.a], p.a_end);
  for (const models::LoraParameters& p : lora) {
    const HostTensor a = take(tensor_name(p, 'A'), {p.a_end - p.a_begin, p.in});
    auto [at, fresh] = parameters.try_emplace(p.a);
    if (fresh) at->second = HostTensor(DType::F32, {rows[p.a], p.in});
    std::ranges::copy(a.data<float>(), at->second.mutable_data<float>().begin() + p.a_begin * p.in);
    parameters[p.b] = take(tensor_name(p, 'B'), {p.out, p.a_end - p.a_begin});
  }
  for (const auto& [name, tensor] : tensors)
    if (!used.count(name)) throw DataError("adapter: tensor {} belongs to no layer that the configuration names", name);
  return parameters;
}

void initialize(const std::vector<models::LoraParameters>& lora, Storehouse& store, uint64_t seed) {
  if (lora.empty()) throw UserError("no layer matches the LoRA's target modules");
  for (const models::LoraParameters& p : lora) {
    // Stacked A-matrices: each layer's rows come from a stream of its own, so they do not depend on the stacking.
    if (p.a_begin == 0) {
      HostTensor a(DType::F32, store.type(p.a).shape);
      for (const models::LoraParameters& part : lora) {
        if (part.a != p.a) continue;
        uint64_t state = seed ^ fnv1a64(part.module + ".lora_A");
        const double bound = 1.0 / std::sqrt(static_cast<double>(part.in));
        auto values = a.mutable_data<float>().subspan(static_cast<size_t>(part.a_begin * part.in),
                                                      static_cast<size_t>((part.a_end - part.a_begin) * part.in));
        for (float& v : values)
          v = static_cast<float>(bound * (static_cast<double>(splitmix64(state) >> 11) * 0x1p-52 - 1.0));
      }
      store.upload(p.a, a);
    }
    store.zero(p.b);
  }
}

void save(const LoraConfig& config, const std::vector<models::LoraParameters>& lora, const Storehouse& store,
          bool transposed, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::pair<std::string, HostTensor>> tensors;
  for (const models::LoraParameters& p : lora) {
    tensors.emplace_back(tensor_name(p, 'A'), rows_of(store.download(p.a), p.a_begin, p.a_end));
    tensors.emplace_back(tensor_name(p, 'B'), store.download(p.b));
  }
  formats::write_safetensors(folder / "adapter_model.safetensors", tensors, {{"format", "pt"}});
  const nlohmann::ordered_json json = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", config.base_model},
      {"r", config.rank},
      {"lora_alpha", config.alpha},
      {"lora_dropout", 0.0},
      {"use_rslora", config.rslora},
      {"target_modules", config.target_modules},
      {"bias", "none"},
      {"fan_in_fan_out", transposed},
      {"inference_mode", true},
      {"modules_to_save", nullptr},
  };
  write_file_atomic(folder / "adapter_config.json", json.dump(2) + "\n");
}

}  // namespace hierarchos::peft
