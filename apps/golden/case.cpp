#include "case.h"

#include <algorithm>

#include "base/json.h"
#include "base/os/file.h"
#include "formats/safetensors.h"
#include "generate/settings.h"
#include "models/registry.h"
#include "peft/lora.h"

namespace hierarchos::golden {
namespace {

Shape shape_of(const nlohmann::json& dims) { return Shape(dims.get<std::vector<int64_t>>()); }

HostTensor draw(const nlohmann::json& spec, const std::string& seed) {
  const std::string name = spec.at("name"), dtype = spec.at("dtype");
  const Shape shape = shape_of(spec.at("shape"));
  if (spec.contains("values")) {
    if (dtype == "F32") return HostTensor::from(DType::F32, shape, spec.at("values").get<std::vector<float>>());
    if (dtype == "I64") return HostTensor::from(DType::I64, shape, spec.at("values").get<std::vector<int64_t>>());
    if (dtype == "I32") return HostTensor::from(DType::I32, shape, spec.at("values").get<std::vector<int32_t>>());
    throw UnsupportedError("tensor {} of type {}", name, dtype);
  }
  const double offset = spec.at("offset"), scale = spec.at("scale");
  const Stream stream(seed + ":" + name);
  HostTensor t(DType::F32, shape);
  auto data = t.mutable_data<float>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(offset + scale * stream.uniform(i));
  return t;
}

std::vector<std::vector<int32_t>> rows_of(const nlohmann::json& input) {
  const auto shape = input.at("shape").get<std::vector<int64_t>>();
  const auto values = input.at("values").get<std::vector<int32_t>>();
  if (shape.size() != 2 || shape[0] * shape[1] != static_cast<int64_t>(values.size()))
    throw DataError("inputs are not a matrix");
  std::vector<std::vector<int32_t>> rows;
  for (int64_t r = 0; r < shape[0]; ++r)
    rows.emplace_back(values.begin() + r * shape[1], values.begin() + (r + 1) * shape[1]);
  return rows;
}

}  // namespace

uint64_t Stream::bits(uint64_t i) const {
  uint64_t z = seed_ + (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double Case::median_err32() const {
  std::vector<double> errors;
  for (const CaseTensor& t : tensors)
    if (t.grad && !t.grad->zero) errors.push_back(t.grad->err32);
  if (errors.empty()) return 0;
  std::sort(errors.begin(), errors.end());
  const size_t n = errors.size();
  return n % 2 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
}

namespace {

void read_expectations(const nlohmann::json& j, Case& c) {
  for (const auto& [key, value] : j.at("inputs").items())
    if (key != "input_ids" && key != "labels") throw UnsupportedError("the case has input {}", key);
  const auto ids = rows_of(j.at("inputs").at("input_ids")), labels = rows_of(j.at("inputs").at("labels"));
  for (size_t r = 0; r < ids.size(); ++r) c.rows.push_back({ids[r], labels.at(r)});
  c.loss = j.at("loss").at("value");
  c.loss_err32 = j.at("loss").at("err32");
  c.logits_err32 = j.at("logits").at("err32");
  c.grad_norm = j.at("grad_norm");
  c.adamw_lr = j.at("adamw").at("lr");
  c.adamw_losses = j.at("adamw").at("losses").get<std::vector<double>>();
  c.adamw_losses32 = j.at("adamw").at("losses32").get<std::vector<double>>();
  if (!j.contains("generate") || j.at("generate").is_null()) return;
  const nlohmann::json& g = j.at("generate");
  Generation generation;
  generation.prompt = g.at("prompt").get<std::vector<int32_t>>();
  if (!g.at("greedy").is_null()) generation.greedy = g.at("greedy").get<std::vector<int32_t>>();
  if (!g.at("beam3").is_null()) generation.beam3 = g.at("beam3").get<std::vector<int32_t>>();
  generation.new_tokens = g.at("new_tokens");
  c.generate = generation;
}

std::vector<CaseTensor> read_tensors(const nlohmann::json& j) {
  std::vector<CaseTensor> tensors;
  const std::string seed = j.at("seed");
  for (const nlohmann::json& spec : j.at("tensors")) {
    CaseTensor t;
    t.name = spec.at("name").get<std::string>();
    t.value = draw(spec, seed);
    if (spec.contains("grad") && !spec.at("grad").is_null()) {
      const nlohmann::json& g = spec.at("grad");
      Gradient gradient;
      gradient.zero = g.value("zero", false);
      if (!gradient.zero) {
        gradient.norm = g.at("norm");
        gradient.err32 = g.at("err32");
        gradient.proj = g.at("proj").get<std::vector<double>>();
      }
      t.grad = gradient;
    }
    tensors.push_back(std::move(t));
  }
  return tensors;
}

}  // namespace

Case read_case(const std::filesystem::path& root, const std::string& name) {
  const bool adapter = name.starts_with("adapters/");
  if (!adapter && !name.starts_with("models/")) throw UnsupportedError("cases of this kind are not implemented");
  Case c;
  c.name = name;
  c.folder = root / name;
  const nlohmann::json j = read_json_file(c.folder / "case.json");
  std::filesystem::path package = c.folder;
  try {
    if (adapter) {
      package = root / "models" / j.at("base").get<std::string>();
      c.adapter_config = read_json_file(c.folder / "adapter_config.json");
      peft::read_config(*c.adapter_config);  // refused before anything is drawn
    }
    c.config = read_json_file(package / "config.json");
    const models::Description description = models::describe(c.config);
    if (adapter) peft::check_targets(peft::read_config(*c.adapter_config), description);
    if (std::filesystem::exists(package / "generation_config.json"))
      c.generation_config = read_json_file(package / "generation_config.json");
    generate::read_generation_settings(c.generation_config, c.config);
    if (const std::string head = j.at("head"); head != "causal")
      throw UnsupportedError("the case has a head of kind {}", head);
    read_expectations(j, c);
    c.tensors = read_tensors(j);
    if (adapter) c.base_tensors = read_tensors(read_json_file(package / "case.json"));
  } catch (const nlohmann::json::exception& e) {
    throw DataError("{}: {}", (c.folder / "case.json").string(), e.what());
  }
  return c;
}

void write_package(const Case& c, const std::filesystem::path& folder) {
  auto write_json = [&](const char* name, const nlohmann::json& j) {
    write_file_atomic(folder / name, j.dump(1) + "\n");
  };
  write_json("config.json", c.config);
  if (!c.generation_config.is_null()) write_json("generation_config.json", c.generation_config);
  auto write_tensors = [&](const char* name, const std::vector<CaseTensor>& from) {
    std::vector<std::pair<std::string, HostTensor>> tensors;
    for (const CaseTensor& t : from) tensors.emplace_back(t.name, t.value);
    formats::write_safetensors(folder / name, tensors, {{"format", "pt"}});
  };
  write_tensors("model.safetensors", c.adapter_config ? c.base_tensors : c.tensors);
  if (c.adapter_config) write_tensors("adapter_model.safetensors", c.tensors);
}

HostTensor read_logits(const Case& c) {
  return formats::read_safetensors(c.folder / "logits.safetensors").at("logits");
}

}  // namespace hierarchos::golden
