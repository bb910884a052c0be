// The table of architectures: model_type → how its config becomes a Description.
#pragma once

#include <string_view>
#include <vector>

#include "models/config_reader.h"
#include "models/description.h"

namespace hierarchos::models {

struct Family {
  std::string_view model_type;
  // Reads every key that the family knows. describe() has declared those of every family harmless, and checks
  // afterwards that none is left.
  void (*describe)(ConfigReader& config, Description& description);
};

const std::vector<Family>& families();
// Null where the architecture is not implemented.
const Family* find_family(std::string_view model_type);

// Throws UnsupportedError naming the architecture or the key that is not honoured, DataError for malformed values.
Description describe(const nlohmann::json& config, const std::string& where = "config.json");

}  // namespace hierarchos::models
