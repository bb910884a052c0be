// hierarchos_golden: proves the implemented architectures against cases computed by the reference framework.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/vulkan/vulkan_backend.h"
#include "base/os/file.h"
#include "check.h"
#include "runtime/device_choice.h"

namespace {

using namespace hierarchos;
namespace fs = std::filesystem;

// Shell patterns: * and ? (neither stops at a slash).
bool glob_match(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*')
    return glob_match(pattern.substr(1), text) || (!text.empty() && glob_match(pattern, text.substr(1)));
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) && glob_match(pattern.substr(1), text.substr(1));
}

struct Outcome {
  std::string status;   // passed, failed, refused
  std::string message;  // why
  std::vector<golden::Check> checks;
  double seconds = 0;
};

// No backend: the float64 reference.
Outcome run_one(const fs::path& root, const std::string& name, Backend* backend, const golden::CheckOptions& options) {
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  try {
    golden::Case c;
    try {
      c = golden::read_case(root, name);
    } catch (const UnsupportedError& e) {
      outcome.status = "refused";
      outcome.message = e.what();
    }
    if (outcome.status.empty()) {
      const TemporaryDirectory scratch;
      outcome.checks = backend ? golden::run_case(c, *backend, scratch.path(), options)
                               : golden::run_case_reference(c, scratch.path());
      const bool passed = std::all_of(outcome.checks.begin(), outcome.checks.end(),
                                      [](const golden::Check& check) { return check.ratio <= 1; });
      outcome.status = passed ? "passed" : "failed";
    }
  } catch (const std::exception& e) {
    outcome.status = "failed";
    outcome.message = e.what();
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

std::string line_of(const std::string& name, const Outcome& outcome) {
  std::string line = fmt::format("{:7} {:40}", outcome.status, name);
  if (!outcome.message.empty()) return line + " " + outcome.message;
  const auto worst = std::max_element(outcome.checks.begin(), outcome.checks.end(),
                                      [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  if (worst == outcome.checks.end()) return line;
  line += fmt::format(" worst {:.2f} of the bound: {} ({} checks, {:.1f} s)", worst->ratio, worst->what,
                      outcome.checks.size(), outcome.seconds);
  for (const golden::Check& check : outcome.checks)
    if (!(check.ratio <= 1)) line += fmt::format("\n        {}: {:.3g} {}", check.what, check.ratio, check.note);
  return line;
}

nlohmann::ordered_json report_of(const std::string& name, const Outcome& outcome) {
  nlohmann::ordered_json j = {{"case", name}, {"status", outcome.status}, {"seconds", outcome.seconds}};
  if (!outcome.message.empty()) j["message"] = outcome.message;
  double worst = 0;
  nlohmann::ordered_json ratios = nlohmann::ordered_json::object();
  for (const golden::Check& check : outcome.checks) {
    worst = std::max(worst, check.ratio);
    // JSON has no infinity: what cannot be compared is null.
    if (std::isfinite(check.ratio))
      ratios[check.what] = check.ratio;
    else
      ratios[check.what] = nullptr;
    if (!check.note.empty()) j["notes"][check.what] = check.note;
  }
  if (!outcome.checks.empty()) {
    if (std::isfinite(worst))
      j["worst"] = worst;
    else
      j["worst"] = nullptr;
    j["ratios"] = ratios;
  }
  return j;
}

int run(int argc, char** argv) {
  CLI::App app{"Compares the implemented architectures with cases computed by the reference framework."};
  std::string root, glob = "*", device = "cpu", json_path, only;
  DeviceOptions device_options;
  golden::CheckOptions options;
  app.add_option("--root", root, "folder with models/, adapters/, hierarchos/ (any may be missing)")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--case", glob, "pattern over names such as models/llama");
  app.add_option("--device", device, "cpu, vulkan:N, or reference (float64, slow)");
  app.add_option("--vulkan-limits", device_options.vulkan_limits,
                 "clamp the device: shared=32K,group=256,alloc=1G,subgroup=8");
  app.add_flag("--validation", device_options.validation, "use Vulkan's validation layers");
  app.add_option("--json", json_path, "write a report to this file");
  app.add_option("--only", only, "forward, backward, adamw or generate")
      ->check(CLI::IsMember({"forward", "backward", "adamw", "generate"}));
  app.add_flag("--debug", options.debug, "run step by step beside the reference and name the first node that differs");
  CLI11_PARSE(app, argc, argv);
  if (!only.empty()) {
    options.forward = only == "forward";
    options.backward = only == "backward";
    options.adamw = only == "adamw";
    options.generate = only == "generate";
  }

  std::vector<std::string> names;
  for (const char* kind : {"models", "adapters", "hierarchos"}) {
    if (!fs::is_directory(fs::path(root) / kind)) continue;
    for (const auto& entry : fs::directory_iterator(fs::path(root) / kind)) {
      const std::string name = std::string(kind) + "/" + entry.path().filename().string();
      if (entry.is_directory() && glob_match(glob, name)) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) throw UserError("no case under {} matches {}", root, glob);

  const auto backend = device == "reference" ? nullptr : open_backend(device, device_options);
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  std::map<std::string, int> counts;
  for (const std::string& name : names) {
    const Outcome outcome = run_one(root, name, backend.get(), options);
    ++counts[outcome.status];
    fmt::print("{}\n", line_of(name, outcome));
    std::fflush(stdout);
    report.push_back(report_of(name, outcome));
  }
  if (!json_path.empty())
    write_file_atomic(json_path, nlohmann::ordered_json{{"device", device}, {"cases", report}}.dump(1) + "\n");
  if (const auto* vulkan = dynamic_cast<const VulkanBackend*>(backend.get());
      vulkan && vulkan->validation_messages() > 0) {
    fmt::print("failed  {} messages of Vulkan's validation layers\n", vulkan->validation_messages());
    ++counts["failed"];
  }
  fmt::print("{} refused\n{} passed, {} failed\n", counts["refused"], counts["passed"], counts["failed"]);
  return counts["failed"] == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "hierarchos_golden: {}\n", e.what());
    return 2;
  }
}
