#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "commands.h"

namespace {

// For scripts: what kind of thing went wrong.
enum ExitCode : int { kOk = 0, kInternal = 1, kUser = 2, kUnsupported = 3, kData = 4, kDevice = 5 };

}  // namespace

int main(int argc, char** argv) {
  using namespace hierarchos;
  CLI::App app{"Trains, fine-tunes and runs open language models on Vulkan GPUs and CPUs."};
  app.set_version_flag("--version", "hierarchos " HIERARCHOS_VERSION);
  app.require_subcommand(1);
  cli::add_generate(app);
  cli::add_finetune(app);
  cli::add_explain(app);
  cli::add_devices(app);
  try {
    app.parse(argc, argv);
    return kOk;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kUser;
  } catch (const std::exception& e) {
    std::fflush(stdout);
    fmt::print(stderr, "hierarchos: {}\n", e.what());
    if (dynamic_cast<const UserError*>(&e)) return kUser;
    if (dynamic_cast<const UnsupportedError*>(&e)) return kUnsupported;
    if (dynamic_cast<const DataError*>(&e)) return kData;
    if (dynamic_cast<const DeviceError*>(&e)) return kDevice;
    return kInternal;
  }
}
