// A package's description and weights.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/package.h"
#include "models/decoder.h"
#include "models/description.h"
#include "runtime/session.h"

namespace hierarchos::models {

struct LoadedModel {
  Description description;
  nlohmann::json config, generation_config;  // generation_config is null where the package has none
  std::shared_ptr<const formats::Package> package;
  // Parameter → its tensor's name in the package; several where the file holds it in parts (ModelValues::parts).
  std::map<std::string, std::vector<std::string>> files;
  std::map<std::string, Storage> storages;  // how a parameter is kept in memory: as it is stored there, or plain
  std::map<std::string, DType> dtypes;      // of plain parameters that are not kept in fp32
  std::map<std::string, LayoutId> layouts;  // of those that are not kept row-major

  // The parameter that a tensor of the package is, or is part `index` of `count` of; none for those that the model does
  // not use.
  struct Place {
    std::string parameter;
    size_t index = 0, count = 1;
  };
  std::optional<Place> place_of(const std::string& tensor) const;
  // A parameter's values as the package holds them; those in parts are decoded to fp32 and joined.
  HostTensor tensor(const std::string& parameter) const;
  // Type of a parameter in memory: fp32, plain and row-major unless the maps above say otherwise. For ModelOptions.
  Type parameter_type(const std::string& name, const Shape& shape) const;
  // Lets go of the file, once everything has been read from it.
  void close() { package.reset(); }
};

// Reads config.json, finds each parameter's tensor and checks its shape. Throws UnsupportedError for what is not
// honoured, DataError for a missing, misshapen or unexpected tensor, naming it.
LoadedModel load(const std::filesystem::path& path);
LoadedModel load(std::shared_ptr<const formats::Package> package);

// Chooses how the device keeps each matrix for inference. Blocks and bf16 stay as they are where its products (and its
// look-ups, for the embedding) read them, on the CPU in the layout kRows16. Other blocks are decoded: to bf16 on the CPU,
// to fp32 elsewhere, with a warning.
void choose_weight_types(LoadedModel& model, Backend& backend);
// All block-quantised tensors will be decoded to fp32: products have no gradient through blocks.
void decode_all_blocks(LoadedModel& model);

// Copies the parameters to the device, those that `store` has not got yet. DeviceError, before anything is read, if they
// do not fit what the device has free.
void upload_parameters(const LoadedModel& model, Storehouse& store);

}  // namespace hierarchos::models
