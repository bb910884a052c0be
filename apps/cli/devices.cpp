// hierarchos devices: what could run a model here.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "runner.h"
#include "runtime/device_choice.h"

namespace hierarchos::cli {
namespace {

void print_table() {
  for (const DeviceEntry& d : list_devices()) {
    fmt::print("{:10} {}{}", d.name, d.usable ? "" : "not usable: ", d.info.name);
    if (!d.info.driver.empty()) fmt::print(", {}", d.info.driver);
    if (d.info.memory_total > 0) fmt::print(", {:.1f} GiB", static_cast<double>(d.info.memory_total) / (1 << 30));
    if (!d.note.empty()) fmt::print(" ({})", d.note);
    fmt::print("\n");
  }
}

void print_list() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DeviceEntry& d : list_devices())
    list.push_back({{"name", d.name},
                    {"description", d.info.name},
                    {"driver", d.info.driver},
                    {"memory_bytes", d.info.memory_total},
                    {"available_bytes", d.info.memory_available},
                    {"usable", d.usable},
                    {"note", d.note}});
  print_json(list);
}

}  // namespace

void add_devices(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("devices", "List the devices of this computer");
  command->add_flag("--json", *json, "as JSON");
  command->footer(
      "The names are what --device takes. auto takes the first Vulkan device that is no rasteriser in\n"
      "software, or else the CPU.");
  command->callback([json] { *json ? print_list() : print_table(); });
}

}  // namespace hierarchos::cli
