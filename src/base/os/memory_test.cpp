#include "base/os/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/os/cpu.h"

namespace hierarchos {
namespace {

TEST(Memory, HostIsPlausible) {
  const HostMemory host = host_memory();
  EXPECT_GT(host.total, int64_t{64} << 20);
  EXPECT_GT(host.available, 0);
  EXPECT_LE(host.available, host.total);
}

TEST(Memory, ProcessGrowsByWhatIsTouched) {
  const int64_t size = int64_t{64} << 20;
  const int64_t before = process_memory().resident;
  std::vector<char> block(static_cast<size_t>(size));
  std::memset(block.data(), 1, block.size());
  const ProcessMemory after = process_memory();
  EXPECT_EQ(block[block.size() / 2], 1);
  EXPECT_GT(before, 0);
  EXPECT_GE(after.resident, before + size * 9 / 10);
  EXPECT_GE(after.peak_resident, after.resident);
}

TEST(Cpu, HasCores) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace hierarchos
