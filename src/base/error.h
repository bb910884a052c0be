// Exceptions of the library. Each says what happened, where, and what to do next; the library never exits or prints.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace hierarchos {

// Base of every exception the library throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

#define HIERARCHOS_DEFINE_ERROR(Name)                                            \
  class Name : public Error {                                                    \
   public:                                                                       \
    explicit Name(const std::string& what) : Error(what) {}                      \
    template <typename... Args>                                                  \
      requires(sizeof...(Args) > 0)                                              \
    explicit Name(fmt::format_string<Args...> format, Args&&... args)            \
        : Error(fmt::format(format, std::forward<Args>(args)...)) {}             \
  }

HIERARCHOS_DEFINE_ERROR(UserError);         // the caller asked for something impossible: bad option, bad shape
HIERARCHOS_DEFINE_ERROR(UnsupportedError);  // valid, but not honoured here: names the key, operator or type
HIERARCHOS_DEFINE_ERROR(DataError);         // a file or row is malformed: names file, tensor or line
HIERARCHOS_DEFINE_ERROR(DeviceError);       // a device failed, was lost, or has too little memory

#undef HIERARCHOS_DEFINE_ERROR

}  // namespace hierarchos
