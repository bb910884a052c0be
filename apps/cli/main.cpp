#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "commands.h"

namespace {

using namespace hierarchos;

// Results that cannot be written are no results.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  fmt::print(stderr, "hierarchos: the output could not be written; is the disk full?\n");
  return code == cli::kOk ? cli::kInternal : code;
}

int exit_code(const std::exception& e) {
  if (dynamic_cast<const UserError*>(&e)) return cli::kUser;
  if (dynamic_cast<const UnsupportedError*>(&e)) return cli::kUnsupported;
  if (dynamic_cast<const DataError*>(&e)) return cli::kData;
  if (dynamic_cast<const DeviceError*>(&e)) return cli::kDevice;
  return cli::kInternal;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Trains, fine-tunes and runs open language models on Vulkan GPUs and CPUs."};
  app.set_version_flag("--version", "hierarchos " HIERARCHOS_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& e) {
    const CLI::App* command = failed;
    for (const CLI::App* next : failed->get_subcommands()) command = next;
    return fmt::format("hierarchos: {}\nSee `hierarchos{} --help`.\n", e.what(),
                       command == failed ? "" : " " + command->get_name());
  });
  std::string log_level = "warning";
  app.add_option("--log-level", log_level, "what to say on stderr: debug, info, warning, error or off")
      ->type_name("LEVEL")
      ->each([](const std::string& level) { set_log_level(parse_log_level(level)); });
  cli::add_generate(app);
  cli::add_chat(app);
  cli::add_eval(app);
  cli::add_bench(app);
  cli::add_finetune(app);
  cli::add_tokenize(app);
  cli::add_explain(app);
  cli::add_devices(app);
  cli::add_doctor(app);
  cli::add_architectures(app);
  cli::add_completion(app);
  app.footer(R"(Examples:
  hierarchos generate -m examples/demo-model -p "Once upon a time"
  hierarchos chat -m model.gguf
  hierarchos devices

`hierarchos COMMAND --help` tells more. docs/cli.md lists the exit statuses.)");
  try {
    app.parse(argc, argv);
    return flushed(cli::kOk);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? flushed(cli::kOk) : cli::kUser;
  } catch (const cli::Exit& e) {
    return flushed(e.code);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    fmt::print(stderr, "hierarchos: {}\n", e.what());
    return exit_code(e);
  }
}
