// The subcommands of `hierarchos`. Each adds its options to the app and sets a callback that does the work.
#pragma once

#include <CLI/CLI.hpp>

namespace hierarchos::cli {

void add_generate(CLI::App& app);
void add_explain(CLI::App& app);
void add_devices(CLI::App& app);
void add_finetune(CLI::App& app);

}  // namespace hierarchos::cli
