#include "runner.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <iterator>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "base/os/file.h"
#include "base/os/terminal.h"
#include "base/threads.h"
#include "runtime/device_choice.h"

namespace hierarchos::cli {

void add_runner_options(CLI::App& command, RunnerOptions& o, bool positional) {
  command.add_option(positional ? "model" : "-m,--model", o.model, "folder of a Hugging Face package, or a .gguf file")
      ->required()
      ->type_name("PATH");
  command.add_option("--device", o.device, "auto, cpu, vulkan or vulkan:N (see `hierarchos devices`)")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--threads", o.threads, "threads on the CPU; 0: as many as there are cores")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
}

std::function<Type(const std::string&, const Shape&)> Runner::parameter_type() const {
  return [this](const std::string& name, const Shape& shape) { return model.parameter_type(name, shape); };
}

std::unique_ptr<Backend> open_device(const std::string& name, int threads) {
  set_default_threads(threads);
  if (name != "auto") return open_backend(name);
  try {
    return open_backend("vulkan");
  } catch (const DeviceError& e) {
    log_debug("no Vulkan device: {}", e.what());
    return open_backend("cpu");
  }
}

Runner load_runner(const RunnerOptions& o) {
  const Progress progress("Loading " + std::filesystem::path(o.model).filename().string());
  Runner r;
  r.model = models::load(o.model);
  r.path = o.model;
  r.tokenizer = Tokenizer::from_package(*r.model.package);
  r.backend = open_device(o.device, o.threads);
  models::choose_weight_types(r.model, *r.backend);
  r.store = std::make_shared<Storehouse>(*r.backend);
  models::upload_parameters(r.model, *r.store);
  r.model.close();
  return r;
}

std::string read_text(const std::string& path) {
  if (path != "-") return read_text_file(path);
  std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  if (text.ends_with('\n')) text.pop_back();  // which `echo` adds
  return text;
}

void print_json(const nlohmann::ordered_json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

struct Progress::Impl {
  std::string what, detail;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false, shown = false;
  std::thread thread;

  void watch() {
    using namespace std::chrono_literals;
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex);
    for (auto wait = 500ms; !changed.wait_for(lock, wait, [&] { return over; }); wait = 200ms) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      fmt::print(stderr, "\r\033[K{} … {:.0f} s{}{}", what, seconds, detail.empty() ? "" : ", ", detail);
      std::fflush(stderr);
      shown = true;
    }
    if (shown) fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
};

Progress::Progress(std::string what) : impl_(std::make_unique<Impl>()) {
  impl_->what = std::move(what);
  if (is_terminal(StandardStream::Error)) impl_->thread = std::thread([this] { impl_->watch(); });
}

Progress::~Progress() {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->over = true;
  }
  impl_->changed.notify_one();
  impl_->thread.join();
}

void Progress::note(std::string detail) {
  const std::lock_guard lock(impl_->mutex);
  impl_->detail = std::move(detail);
}

}  // namespace hierarchos::cli
