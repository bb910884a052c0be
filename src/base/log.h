// Messages to the user's terminal or log: to stderr, never to stdout, which belongs to results.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace hierarchos {

enum class LogLevel : int { Debug, Info, Warning, Error, Off };

// Messages below the level are dropped. Warning at first: a library is quiet unless something is wrong.
void set_log_level(LogLevel level);
LogLevel log_level();

// "debug", "info", "warning", "error", "off", as --log-level takes them; UserError names the choices.
LogLevel parse_log_level(std::string_view name);

// Where messages go instead of stderr (a window, a test); nothing: stderr again. Called from any thread, one at a time.
void set_log_sink(std::function<void(LogLevel, std::string_view message)> sink);

void log_message(LogLevel level, std::string_view message);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::Debug) log_message(LogLevel::Debug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::Info) log_message(LogLevel::Info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::Warning) log_message(LogLevel::Warning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::Error) log_message(LogLevel::Error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hierarchos
