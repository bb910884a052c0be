// hierarchos devices: what could run a model here.
#include <fmt/format.h>

#include "commands.h"
#include "runtime/device_choice.h"

namespace hierarchos::cli {

void add_devices(CLI::App& app) {
  CLI::App* command = app.add_subcommand("devices", "List the devices of this computer");
  command->callback([] {
    for (const DeviceEntry& d : list_devices()) {
      fmt::print("{:10} {}{}", d.name, d.usable ? "" : "not usable: ", d.info.name);
      if (!d.info.driver.empty()) fmt::print(", {}", d.info.driver);
      if (d.info.memory_total > 0) fmt::print(", {:.1f} GiB", static_cast<double>(d.info.memory_total) / (1 << 30));
      if (!d.note.empty()) fmt::print(" ({})", d.note);
      fmt::print("\n");
    }
  });
}

}  // namespace hierarchos::cli
