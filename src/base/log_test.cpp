#include "base/log.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/error.h"

namespace hierarchos {
namespace {

TEST(Log, LevelsFilter) {
  const LogLevel before = log_level();
  std::vector<std::pair<LogLevel, std::string>> got;
  set_log_sink([&](LogLevel level, std::string_view message) { got.emplace_back(level, message); });
  set_log_level(LogLevel::Warning);
  log_info("dropped {}", 1);
  log_warning("kept {}", 2);
  log_error("kept {}", "{}");  // arguments are not formats
  set_log_level(LogLevel::Debug);
  log_debug("now kept");
  set_log_level(LogLevel::Off);
  log_error("dropped");
  set_log_level(before);
  set_log_sink({});
  const std::vector<std::pair<LogLevel, std::string>> expected = {
      {LogLevel::Warning, "kept 2"}, {LogLevel::Error, "kept {}"}, {LogLevel::Debug, "now kept"}};
  EXPECT_EQ(got, expected);
}

TEST(Log, GoesToStderrOnly) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  log_error("something broke");
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(err.find("error: something broke\n"), std::string::npos) << err;
}

TEST(Log, ParsesLevels) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::Debug);
  EXPECT_EQ(parse_log_level("off"), LogLevel::Off);
  EXPECT_THROW(parse_log_level("loud"), UserError);
}

}  // namespace
}  // namespace hierarchos
