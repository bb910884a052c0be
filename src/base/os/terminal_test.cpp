#include "base/os/terminal.h"

#include <gtest/gtest.h>

#include <csignal>

namespace hierarchos {
namespace {

TEST(InterruptGuard, RemembersOneInterrupt) {
  InterruptGuard guard;
  EXPECT_FALSE(guard.interrupted());
  std::raise(SIGINT);
  EXPECT_TRUE(guard.interrupted());
  EXPECT_TRUE(guard.take());
  EXPECT_FALSE(guard.take());
  std::raise(SIGINT);
  EXPECT_TRUE(guard.take());
}

TEST(InterruptGuardDeathTest, TheSecondEndsTheProcess) {
  EXPECT_EXIT(
      {
        std::signal(SIGINT, SIG_DFL);  // which may be ignored where tests run in the background
        InterruptGuard guard;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), ".*");
  EXPECT_EXIT(
      {
        std::signal(SIGINT, SIG_DFL);
        { InterruptGuard guard; }
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), ".*");
}

}  // namespace
}  // namespace hierarchos
