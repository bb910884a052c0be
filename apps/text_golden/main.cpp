// hierarchos_text_golden --root DIR [--real DIR] [--json FILE]: compares with what the reference gave for the same
// texts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/os/file.h"
#include "report.h"

using namespace hierarchos;
using namespace hierarchos::text_golden;

namespace {

void print(const FileReport& file) {
  fmt::print("{:<32} {:6} passed {:6} failed", file.name(), file.passed(), file.failed());
  if (file.skipped() > 0) fmt::print(" {:6} skipped: {}", file.skipped(), file.why_skipped());
  fmt::print("\n");
  if (file.failed() > 0) fmt::print("    {}\n", file.first_failure());
}

nlohmann::json as_json(const FileReport& file) {
  nlohmann::json out = {{"file", file.name()}, {"passed", file.passed()}, {"failed", file.failed()}};
  if (file.skipped() > 0) out.update({{"skipped", file.skipped()}, {"why_skipped", file.why_skipped()}});
  if (file.failed() > 0) out["first_failure"] = file.first_failure();
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares tokenizers and chat templates with the reference's results");
  Options options;
  std::string json_path;
  app.add_option("--root", options.root, "Folder of the cases")->required()->check(CLI::ExistingDirectory);
  app.add_option("--real", options.real, "Folder of the published packages that some cases name");
  app.add_option("--json", json_path, "Write the results there, too");
  CLI11_PARSE(app, argc, argv);
  try {
    const Reports reports = run_chat(options);
    int64_t passed = 0, failed = 0;
    nlohmann::json files = nlohmann::json::array();
    for (const FileReport& file : reports) {
      print(file);
      passed += file.passed();
      failed += file.failed();
      files.push_back(as_json(file));
    }
    fmt::print("{} passed, {} failed\n", passed, failed);
    if (!json_path.empty()) {
      const nlohmann::json all = {{"passed", passed}, {"failed", failed}, {"files", files}};
      write_file_atomic(json_path, all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    }
    return failed == 0 && passed > 0 ? 0 : 1;
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
