// The time that templates see.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hierarchos::jinja {

// Local time, as a calendar and a clock on the wall show it.
struct CivilTime {
  int year = 1970, month = 1, day = 1;  // month and day from 1
  int hour = 0, minute = 0, second = 0;
  int microsecond = 0;
};
using Clock = std::function<CivilTime()>;

CivilTime local_time_now();

// As Python's datetime.strftime in the "C" locale, with glibc's flags (%-d).
std::string format_time(const CivilTime& time, std::string_view format);

}  // namespace hierarchos::jinja
