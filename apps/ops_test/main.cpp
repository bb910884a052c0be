// Runs the operators' cases on a device: ops_test test|grad|perf|support.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "modes.h"
#include "runtime/device_choice.h"

namespace {

using namespace hierarchos;
using namespace hierarchos::ops_test;

struct Options {
  std::string mode, op = "*", name = "*", device = "cpu", vulkan_limits, vulkan_tier;
  bool validation = false, verbose = false;
  size_t sample = 0;
  uint64_t seed = 1;
  double time_budget = 0;
};

using Run = Report (*)(const NamedCase&, Device&);

Report run_guarded(Run run, const NamedCase& c, Device& device) {
  try {
    return run(c, device);
  } catch (const UnsupportedError& e) {
    return {Outcome::Unsupported, e.what()};
  } catch (const std::exception& e) {
    return {Outcome::Failed, e.what()};
  }
}

int run_all(const Options& options) {
  static const std::map<std::string, Run> modes = {
      {"test", run_test}, {"grad", run_grad}, {"perf", run_perf}, {"support", run_support}};
  std::vector<NamedCase> cases = select_cases(options.op, options.name);
  if (cases.empty()) throw UserError("no case matches --op {} --case {}", options.op, options.name);
  if (options.sample > 0 || options.time_budget > 0) {
    std::mt19937_64 random(options.seed);
    for (size_t i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[random() % i]);
    if (options.sample > 0 && options.sample < cases.size()) cases.resize(options.sample);
  }

  Device device;
  device.backend = open_backend(options.device, {.vulkan_limits = options.vulkan_limits, .vulkan_tier = options.vulkan_tier, .validation = options.validation});
  std::unique_ptr<ThreadPool> pool;
  if (device.backend->kind() == BackendKind::Cpu) {
    pool = std::make_unique<ThreadPool>(default_pool().size() == 1 ? 3 : 1);
    device.other = std::make_unique<CpuBackend>(*pool);
  }
  const bool support = options.mode == "support", perf = options.mode == "perf";
  if (perf) {
    device.copy_bytes_per_second = measure_copy(*device.backend);
    std::printf("%s: a copy moves %.1f GB/s\n", device.backend->info().name.c_str(), device.copy_bytes_per_second / 1e9);
  }

  const auto start = std::chrono::steady_clock::now();
  size_t passed = 0, failed = 0, unsupported = 0, done = 0;
  for (const NamedCase& c : cases) {
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (options.time_budget > 0 && spent > options.time_budget) break;
    ++done;
    const Report report = run_guarded(modes.at(options.mode), c, device);
    if (report.outcome == Outcome::Skipped) continue;
    if (report.outcome == Outcome::Passed) ++passed;
    if (report.outcome == Outcome::Unsupported) ++unsupported;
    if (report.outcome == Outcome::Failed || (report.outcome == Outcome::Unsupported && !support)) ++failed;
    if (report.outcome == Outcome::Passed && !options.verbose && !perf) continue;
    const char* word = report.outcome == Outcome::Passed ? "ok" : report.outcome == Outcome::Failed ? "FAILED" : "unsupported";
    std::printf("%s %s%s%s\n", word, c.name().c_str(), report.text.empty() ? "" : ": ", report.text.c_str());
    std::fflush(stdout);
  }
  if (done < cases.size()) std::printf("%zu of %zu cases were left out: the time budget is spent\n", cases.size() - done, cases.size());
  if (support) std::printf("%zu unsupported\n", unsupported);
  if (passed + failed + unsupported == 0) {
    std::printf("no case of these has anything to do in mode %s\n", options.mode.c_str());
    return 2;
  }
  std::printf("%zu passed, %zu failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs the operators' cases on a device");
  Options o;
  app.add_option("mode", o.mode, "test: values; grad: gradients; perf: speed; support: what the device runs")
      ->required()
      ->check(CLI::IsMember({"test", "grad", "perf", "support"}));
  app.add_option("--op", o.op, "Operators, a glob")->capture_default_str();
  app.add_option("--case", o.name, "Cases, a glob")->capture_default_str();
  app.add_option("--device", o.device, "cpu, vulkan or vulkan:N")->capture_default_str();
  app.add_option("--vulkan-limits", o.vulkan_limits, "Clamps the device: shared=32K,group=256,alloc=1G,subgroup=8");
  app.add_option("--vulkan-tier", o.vulkan_tier, "base: only kernels that every device runs")->check(CLI::IsMember({"base"}));
  app.add_flag("--validation", o.validation, "Turns on Vulkan's validation layers");
  app.add_option("--sample", o.sample, "Runs this many cases, chosen by the seed");
  app.add_option("--seed", o.seed, "Of the choice")->capture_default_str();
  app.add_option("--time-budget", o.time_budget, "Stops after this many seconds; cases run in an order chosen by the seed");
  app.add_flag("-v,--verbose", o.verbose, "A line a case, passed or not");
  CLI11_PARSE(app, argc, argv);
  try {
    return run_all(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ops_test: %s\n", e.what());
    return 2;
  }
}
