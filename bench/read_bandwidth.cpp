// How fast this machine's threads read memory: read_bandwidth [THREADS]. The best of five passes over 512 MiB.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "base/threads.h"

int main(int argc, char** argv) {
  using namespace hierarchos;
  ThreadPool pool(argc > 1 ? std::max(1, std::atoi(argv[1])) : 2);
  constexpr int64_t kWords = (int64_t{512} << 20) / 8, kTask = (int64_t{1} << 20) / 8;
  std::vector<uint64_t> memory(kWords, 1), sums(kWords / kTask);
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(kWords / kTask, [&](int64_t task, int) {
      const uint64_t* at = memory.data() + task * kTask;
      uint64_t sum[8] = {};
      for (int64_t i = 0; i < kTask; i += 8) {
        __builtin_prefetch(at + i + 512);
        for (int64_t j = 0; j < 8; ++j) sum[j] += at[i + j];
      }
      sums[static_cast<size_t>(task)] = std::accumulate(sum, sum + 8, uint64_t{0});
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(kWords) * 8 / seconds / 1e9);
  }
  const uint64_t check = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  if (check != kWords) return 1;
  fmt::print("Memory is read at {:.1f} GB/s.\n", best);
}
