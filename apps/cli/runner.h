// What the commands that run a model share: its options, loading it with a sign of life, text from files.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "backend/backend.h"
#include "models/load.h"
#include "tokenizer/tokenizer.h"

namespace hierarchos::cli {

struct RunnerOptions {
  std::string model, device = "auto";
  int threads = 0;
};
// --model, --device and --threads. `positional`: the model is an argument of its own instead.
void add_runner_options(CLI::App& command, RunnerOptions& options, bool positional = false);

// A model on a device.
struct Runner {
  std::string path;  // of the package, whose files are closed once the weights are on the device
  models::LoadedModel model;
  std::shared_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Backend> backend;
  std::shared_ptr<Storehouse> store;
  std::function<Type(const std::string&, const Shape&)> parameter_type() const;
};
// Loads everything, and says so on stderr when it takes long and somebody watches.
Runner load_runner(const RunnerOptions& options);

// "auto": the best Vulkan device that is no rasteriser in software, else the CPU.
std::unique_ptr<Backend> open_device(const std::string& name, int threads);

// A file's text, or for "-" standard input's without its last line's end.
std::string read_text(const std::string& path);

// With replacement characters where bytes are not UTF-8.
void print_json(const nlohmann::ordered_json& value);

// While it lives, says on stderr what goes on and for how long, if that is a terminal and it takes over half a second.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  void note(std::string detail);  // shown behind it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hierarchos::cli
