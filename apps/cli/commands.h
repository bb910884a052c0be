// The subcommands of `hierarchos`. Each adds its options to the app and sets a callback that does the work.
#pragma once

#include <CLI/CLI.hpp>

namespace hierarchos::cli {

void add_generate(CLI::App& app);
void add_chat(CLI::App& app);
void add_eval(CLI::App& app);
void add_bench(CLI::App& app);
void add_finetune(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_explain(CLI::App& app);
void add_devices(CLI::App& app);
void add_doctor(CLI::App& app);
void add_architectures(CLI::App& app);
void add_completion(CLI::App& app);

// The exit status says what kind of thing went wrong; docs/cli.md lists them for scripts.
enum ExitCode : int { kOk = 0, kInternal = 1, kUser = 2, kUnsupported = 3, kData = 4, kDevice = 5, kInterrupted = 130 };

// Thrown by a command that has said everything already.
struct Exit {
  int code;
};

}  // namespace hierarchos::cli
