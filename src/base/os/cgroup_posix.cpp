#include "base/os/cgroup_posix.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace hierarchos {
namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// "max", a missing file and absurd values (version 1 writes about 2^63 for "no limit") are no number.
std::optional<int64_t> number_in(const std::string& path) {
  const auto line = first_line(path);
  if (!line) return std::nullopt;
  std::istringstream stream(*line);
  int64_t value = 0;
  if (!(stream >> value) || value < 0 || value >= (int64_t{1} << 60)) return std::nullopt;
  return value;
}

int64_t stat_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  int64_t value = 0;
  while (file >> name >> value)
    if (name == key) return value;
  return 0;
}

// Folders of the process's group and its parents for a controller, innermost first. In a container the path of
// /proc/self/cgroup may not exist below the mount, which shows the container's own group as its root.
std::vector<std::string> folders(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  std::vector<std::string> found;
  while (std::getline(file, line)) {  // "0::/path" or "4:memory:/path" or "3:cpu,cpuacct:/path"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    std::string root = "/sys/fs/cgroup";
    if (names != ",,") {
      if (names.find("," + controller + ",") == std::string::npos) continue;
      root += "/" + controller;
    }
    while (!path.empty() && path != "/") {
      found.push_back(root + path);
      path.resize(path.rfind('/'));
    }
    found.push_back(root);
  }
  return found;
}

}  // namespace

double cgroup_cpu_quota() {
  double least = 0;
  const auto take = [&](double quota, double period) {
    if (quota > 0 && period > 0 && (least == 0 || quota / period < least)) least = quota / period;
  };
  for (const std::string& folder : folders("cpu")) {
    if (const auto line = first_line(folder + "/cpu.max")) {
      std::istringstream stream(*line);  // "max 100000" or "150000 100000"
      double quota = 0;
      double period = 0;
      if (stream >> quota >> period) take(quota, period);
    }
    const auto quota = number_in(folder + "/cpu.cfs_quota_us");
    const auto period = number_in(folder + "/cpu.cfs_period_us");
    if (quota && period) take(static_cast<double>(*quota), static_cast<double>(*period));
  }
  return least;
}

CgroupMemory cgroup_memory() {
  CgroupMemory tightest;
  const auto take = [&](std::optional<int64_t> limit, std::optional<int64_t> usage, int64_t reclaimable) {
    if (!limit || !usage) return;
    const int64_t used = std::max<int64_t>(0, *usage - reclaimable);
    if (tightest.limit == 0 || *limit - used < tightest.limit - tightest.used) tightest = {*limit, used};
  };
  for (const std::string& folder : folders("memory")) {
    take(number_in(folder + "/memory.max"), number_in(folder + "/memory.current"),
         stat_of(folder + "/memory.stat", "inactive_file"));
    take(number_in(folder + "/memory.limit_in_bytes"), number_in(folder + "/memory.usage_in_bytes"),
         stat_of(folder + "/memory.stat", "total_inactive_file"));
  }
  return tightest;
}

}  // namespace hierarchos
