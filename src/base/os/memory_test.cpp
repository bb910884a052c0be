#include "base/os/memory.h"

#include <gtest/gtest.h>

#include <memory>

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
  const auto block = std::make_unique<char[]>(static_cast<size_t>(size));
  volatile char* const touched = block.get();  // a compiler may otherwise leave out memory that nobody looks at
  for (int64_t i = 0; i < size; i += 1024) touched[i] = 1;
  const ProcessMemory after = process_memory();
  EXPECT_GT(before, 0);
  EXPECT_GE(after.resident, before + size * 9 / 10);
  EXPECT_GE(after.peak_resident, after.resident);
}

TEST(Cpu, HasCores) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace hierarchos
