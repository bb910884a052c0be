// hierarchos_text_golden --root DIR [--real DIR] [--json FILE]: compares with what the reference gave for the same
// texts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/os/file.h"
#include "report.h"
#include "serve.h"

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
  bool serving = false;
  app.add_option("--root", options.root, "Folder of the cases")->check(CLI::ExistingDirectory);
  app.add_option("--real", options.real, "Folder of the published packages that some cases name");
  app.add_option("--json", json_path, "Write the results there, too");
  app.add_flag("--serve", serving, "Answer requests on standard input instead (tools/tokenizer_fuzz.py)");
  CLI11_PARSE(app, argc, argv);
  try {
    if (serving) {
      serve();
      return 0;
    }
    if (options.root.empty()) throw UserError("--root says where the cases are");
    Reports reports = run_tokenizers(options);
    for (FileReport& file : run_chat(options)) reports.push_back(std::move(file));
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
