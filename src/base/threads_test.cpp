#include "base/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"

namespace hierarchos {
namespace {

using Clock = std::chrono::steady_clock;

class Pools : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Pools, testing::Values(1, 2, 3, 8));

TEST_P(Pools, EachIndexOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (const int64_t count : {0, 1, 2, 3, 7, 64, 1000, 12345}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
    std::atomic<bool> good_worker{true};
    pool.parallel_for(count, [&](int64_t i, int worker) {
      ++calls[static_cast<size_t>(i)];
      if (worker < 0 || worker >= pool.size()) good_worker = false;
    });
    for (const auto& c : calls) ASSERT_EQ(c, 1);
    EXPECT_TRUE(good_worker);
  }
}

// Many short loops, so that late workers meet closed doors; what bodies wrote is visible after the loop.
TEST_P(Pools, ManyLoops) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> sums(64);
  for (int64_t loop = 0; loop < 20000; ++loop) {
    const int64_t count = 1 + loop % 64;
    pool.parallel_for(count, [&](int64_t i, int) { sums[static_cast<size_t>(i)] += i; });
  }
  for (int64_t i = 0; i < 64; ++i) {
    int64_t calls = 0;
    for (int64_t loop = 0; loop < 20000; ++loop) calls += i < 1 + loop % 64;
    EXPECT_EQ(sums[static_cast<size_t>(i)], calls * i);
  }
}

TEST_P(Pools, WorkersAreExclusive) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> inside(static_cast<size_t>(pool.size()));
  std::atomic<bool> shared{false};
  pool.parallel_for(500, [&](int64_t, int worker) {
    auto& n = inside[static_cast<size_t>(worker)];
    if (++n != 1) shared = true;
    std::this_thread::sleep_for(std::chrono::microseconds(10));
    --n;
  });
  EXPECT_FALSE(shared);
}

TEST_P(Pools, NestedRunsInlineWithTheSameWorker) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> calls{0};
  std::atomic<bool> good{true};
  for (const int64_t outer : {1, 20}) {
    pool.parallel_for(outer, [&](int64_t, int worker) {
      const auto thread = std::this_thread::get_id();
      pool.parallel_for(30, [&](int64_t, int inner) {
        ++calls;
        if (inner != worker || std::this_thread::get_id() != thread) good = false;
      });
    });
  }
  EXPECT_EQ(calls, 21 * 30);
  EXPECT_TRUE(good);
}

TEST(ThreadPool, OtherPoolsNest) {
  ThreadPool outer(2), inner(2);
  std::atomic<int64_t> calls{0};
  outer.parallel_for(20, [&](int64_t, int) { inner.parallel_for(30, [&](int64_t, int) { ++calls; }); });
  EXPECT_EQ(calls, 600);
}

TEST_P(Pools, ExceptionsPropagate) {
  ThreadPool pool(GetParam());
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::atomic<int> begun{0};
    try {
      pool.parallel_for(10000, [&](int64_t i, int) {
        ++begun;
        if (i == repeat) throw std::runtime_error("index " + std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), "index " + std::to_string(repeat));
    }
    EXPECT_GT(begun, 0);
    std::atomic<int> calls{0};  // the pool still works
    pool.parallel_for(100, [&](int64_t, int) { ++calls; });
    EXPECT_EQ(calls, 100);
  }
}

TEST_P(Pools, CallersTakeTurns) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> calls{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int loop = 0; loop < 500; ++loop) pool.parallel_for(20, [&](int64_t, int) { ++calls; });
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(calls, 4 * 500 * 20);
}

// Long bodies: the caller sleeps until the last is done. Long gaps: the workers sleep and wake.
TEST(ThreadPool, SleepsAndWakes) {
  ThreadPool pool(2);
  for (int loop = 0; loop < 20; ++loop) {
    std::atomic<int> calls{0};
    pool.parallel_for(2, [&](int64_t i, int) {
      std::this_thread::sleep_for(std::chrono::milliseconds(i == 1 ? 3 : 1));
      ++calls;
    });
    EXPECT_EQ(calls, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(loop % 3));
  }
}

TEST(ThreadPool, RunsInParallel) {
  ThreadPool pool(4);
  const auto begin = Clock::now();
  pool.parallel_for(4, [](int64_t, int) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(190));
}

TEST(ThreadPool, IdleThreadsBurnNothing) {
  ThreadPool pool(4);
  pool.parallel_for(100, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto used = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(used() - before, 0.02);
}

TEST(ThreadPool, RefusesBadSizes) {
  EXPECT_THROW(ThreadPool(0), UserError);
  EXPECT_THROW(ThreadPool(-1), UserError);
  EXPECT_THROW(ThreadPool(1025), UserError);
  EXPECT_THROW(set_default_threads(-1), UserError);
}

TEST(DefaultPool, KeepsItsSize) {
  ThreadPool& pool = default_pool();
  EXPECT_EQ(&pool, &default_pool());
  EXPECT_NO_THROW(set_default_threads(pool.size()));
  EXPECT_THROW(set_default_threads(pool.size() + 1), UserError);
}

}  // namespace
}  // namespace hierarchos
