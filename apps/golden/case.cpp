#include "apps/golden/case.h"

#include <algorithm>
#include <fstream>

#include "base/error.h"

namespace hierarchos::golden {
namespace {

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw DataError("{}: cannot be read", path.string());
  try {
    return nlohmann::json::parse(in);
  } catch (const nlohmann::json::exception& e) {
    throw DataError("{}: {}", path.string(), e.what());
  }
}

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

uint64_t fnv1a64(std::string_view text) {
  uint64_t h = 0xCBF29CE484222325u;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001B3u;
  return h;
}

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

Case read_case(const std::filesystem::path& folder, const std::string& name) {
  const nlohmann::json j = read_json(folder / "case.json");
  Case c;
  c.name = name;
  c.folder = folder;
  c.config = read_json(folder / "config.json");
  if (std::filesystem::exists(folder / "generation_config.json"))
    c.generation_config = read_json(folder / "generation_config.json");
  try {
    c.head = j.at("head").get<std::string>();
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
    if (!j.at("generate").is_null()) {
      const nlohmann::json& g = j.at("generate");
      Generation generation;
      generation.prompt = g.at("prompt").get<std::vector<int32_t>>();
      if (!g.at("greedy").is_null()) generation.greedy = g.at("greedy").get<std::vector<int32_t>>();
      if (!g.at("beam3").is_null()) generation.beam3 = g.at("beam3").get<std::vector<int32_t>>();
      generation.new_tokens = g.at("new_tokens");
      c.generate = generation;
    }
    const std::string seed = j.at("seed");
    for (const nlohmann::json& spec : j.at("tensors")) {
      CaseTensor t;
      t.name = spec.at("name").get<std::string>();
      t.value = draw(spec, seed);
      t.stored = spec.contains("values");
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
      c.tensors.push_back(std::move(t));
    }
  } catch (const nlohmann::json::exception& e) {
    throw DataError("{}: {}", (folder / "case.json").string(), e.what());
  }
  return c;
}

}  // namespace hierarchos::golden
