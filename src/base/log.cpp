#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "base/error.h"

namespace hierarchos {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return spdlog::level::debug;
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warning: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
    case LogLevel::Off: break;
  }
  return spdlog::level::off;
}

LogLevel from_spdlog(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug: return LogLevel::Debug;
    case spdlog::level::info: return LogLevel::Info;
    case spdlog::level::warn: return LogLevel::Warning;
    default: return LogLevel::Error;
  }
}

// stderr, unless a function is given.
class Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void set_function(std::function<void(LogLevel, std::string_view)> function) {
    const std::lock_guard lock(mutex_);
    function_ = std::move(function);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (function_)
      function_(from_spdlog(message.level), {message.payload.data(), message.payload.size()});
    else
      terminal_.log(message);
  }
  void flush_() override { terminal_.flush(); }
  void set_pattern_(const std::string& pattern) override { terminal_.set_pattern(pattern); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    terminal_.set_formatter(std::move(formatter));
  }

 private:
  spdlog::sinks::stderr_color_sink_st terminal_;  // colours on terminals only
  std::function<void(LogLevel, std::string_view)> function_;
};

struct Log {
  std::shared_ptr<Sink> sink = std::make_shared<Sink>();
  spdlog::logger logger{"hierarchos", sink};
  std::atomic<LogLevel> level{LogLevel::Warning};

  Log() {
    logger.set_level(spdlog::level::trace);  // filtered before
    logger.set_pattern("[%H:%M:%S] %^%l%$: %v");
    logger.flush_on(spdlog::level::trace);
  }
};

Log& instance() {
  // Never destroyed: other objects' destructors may still log.
  static Log* const log = std::make_unique<Log>().release();
  return *log;
}

}  // namespace

void set_log_level(LogLevel level) { instance().level.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return instance().level.load(std::memory_order_relaxed); }

LogLevel parse_log_level(std::string_view name) {
  if (name == "debug") return LogLevel::Debug;
  if (name == "info") return LogLevel::Info;
  if (name == "warning") return LogLevel::Warning;
  if (name == "error") return LogLevel::Error;
  if (name == "off") return LogLevel::Off;
  throw UserError("unknown log level '{}': give debug, info, warning, error or off", name);
}

void set_log_sink(std::function<void(LogLevel, std::string_view)> sink) {
  instance().sink->set_function(std::move(sink));
}

void log_message(LogLevel level, std::string_view message) {
  if (level < log_level() || level == LogLevel::Off) return;
  instance().logger.log(to_spdlog(level), "{}", message);
}

}  // namespace hierarchos
