// hierarchos architectures: the model families that can be loaded.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "models/registry.h"
#include "runner.h"

namespace hierarchos::cli {

void add_architectures(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("architectures", "List the model families that can be loaded");
  command->add_flag("--json", *json, "as JSON");
  command->footer("The names are values of model_type in config.json. A package of another family is refused.");
  command->callback([json] {
    std::vector<std::string> names;
    for (const models::Family& family : models::families()) names.emplace_back(family.model_type);
    std::ranges::sort(names);
    if (*json) {
      print_json(names);
      return;
    }
    for (const std::string& name : names) fmt::print("{}\n", name);
  });
}

}  // namespace hierarchos::cli
