#include "template/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

namespace hierarchos::jinja {
namespace {

constexpr std::array kDays = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                "July",    "August",   "September", "October", "November", "December"};

int64_t days_from_civil(int year, int month, int day) {
  using namespace std::chrono;
  return sys_days(std::chrono::year(year) / month / day).time_since_epoch().count();
}

class TimeFormatter {
 public:
  explicit TimeFormatter(const CivilTime& t) : t_(t) {
    const int64_t days = days_from_civil(t.year, t.month, t.day);
    weekday_ = static_cast<int>(((days + 4) % 7 + 7) % 7);
    yearday_ = static_cast<int>(days - days_from_civil(t.year, 1, 1));
  }

  std::string run(std::string_view format) {
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%' || i + 1 == format.size()) {
        out_ += format[i];
        continue;
      }
      const size_t begin = i++;
      flag_ = 0;
      while (i < format.size() && std::string_view("-_0^#").find(format[i]) != std::string_view::npos)
        flag_ = format[i++];
      width_ = -1;
      for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i)
        width_ = std::min(std::max(width_, 0) * 10 + (format[i] - '0'), 1024);
      // Forms of other calendars, which the "C" locale has not.
      if (i + 1 < format.size() && (format[i] == 'E' || format[i] == 'O')) ++i;
      if (i == format.size() || !directive(format[i])) out_ += format.substr(begin, i - begin + 1);
    }
    return std::move(out_);
  }

 private:
  void number(int64_t value, int width, char padding = '0') {
    if (flag_ == '_') padding = ' ';
    if (flag_ == '0') padding = '0';
    if (width_ >= 0) width = width_;
    if (width_ >= 0 && flag_ == '-') padding = ' ';
    std::string digits = std::to_string(value);
    if ((flag_ != '-' || width_ >= 0) && static_cast<int>(digits.size()) < width)
      digits.insert(0, static_cast<size_t>(width) - digits.size(), padding);
    out_ += digits;
  }

  void name(std::string text) {
    if (width_ > static_cast<int>(text.size()))
      text.insert(0, static_cast<size_t>(width_) - text.size(), flag_ == '0' ? '0' : ' ');
    if (flag_ == '^' || flag_ == '#')
      for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    out_ += text;
  }

  void compose(const char* format) {
    std::string text = TimeFormatter(t_).run(format);
    name(std::move(text));
  }

  // The week that a day belongs to, and that week's year, by ISO 8601.
  std::pair<int, int> iso_week() const {
    const int64_t days = days_from_civil(t_.year, t_.month, t_.day);
    const int64_t thursday = days - (weekday_ + 6) % 7 + 3;
    int year = t_.year;
    if (thursday < days_from_civil(year, 1, 1))
      --year;
    else if (thursday >= days_from_civil(year + 1, 1, 1))
      ++year;
    return {year, static_cast<int>((thursday - days_from_civil(year, 1, 1)) / 7) + 1};
  }

  bool directive(char c) {
    const int hour12 = t_.hour % 12 == 0 ? 12 : t_.hour % 12;
    switch (c) {
      case 'a':
        name(std::string(kDays[static_cast<size_t>(weekday_)]).substr(0, 3));
        break;
      case 'A':
        name(kDays[static_cast<size_t>(weekday_)]);
        break;
      case 'b':
      case 'h':
        name(std::string(kMonths[static_cast<size_t>(t_.month) - 1]).substr(0, 3));
        break;
      case 'B':
        name(kMonths[static_cast<size_t>(t_.month) - 1]);
        break;
      case 'c':
        compose("%a %b %e %H:%M:%S %Y");
        break;
      case 'C':
        number(t_.year / 100, 2);
        break;
      case 'd':
        number(t_.day, 2);
        break;
      case 'D':
      case 'x':
        compose("%m/%d/%y");
        break;
      case 'e':
        number(t_.day, 2, ' ');
        break;
      case 'f':
        out_ += fmt::format("{:06}", t_.microsecond);
        break;
      case 'F':
        compose("%Y-%m-%d");
        break;
      case 'g':
        number(iso_week().first % 100, 2);
        break;
      case 'G':
        number(iso_week().first, 4);
        break;
      case 'H':
        number(t_.hour, 2);
        break;
      case 'I':
        number(hour12, 2);
        break;
      case 'j':
        number(yearday_ + 1, 3);
        break;
      case 'k':
        number(t_.hour, 2, ' ');
        break;
      case 'l':
        number(hour12, 2, ' ');
        break;
      case 'm':
        number(t_.month, 2);
        break;
      case 'M':
        number(t_.minute, 2);
        break;
      case 'n':
        name("\n");
        break;
      case 'p':
        if (flag_ == '#')
          out_ += t_.hour < 12 ? "am" : "pm";
        else
          name(t_.hour < 12 ? "AM" : "PM");
        break;
      case 'P':
        out_ += t_.hour < 12 ? "am" : "pm";
        break;
      case 'r':
        compose("%I:%M:%S %p");
        break;
      case 'R':
        compose("%H:%M");
        break;
      case 'S':
        number(t_.second, 2);
        break;
      case 't':
        name("\t");
        break;
      case 'T':
      case 'X':
        compose("%H:%M:%S");
        break;
      case 'u':
        number(weekday_ == 0 ? 7 : weekday_, 1);
        break;
      case 'U':
        number((yearday_ + 7 - weekday_) / 7, 2);
        break;
      case 'V':
        number(iso_week().second, 2);
        break;
      case 'w':
        number(weekday_, 1);
        break;
      case 'W':
        number((yearday_ + 7 - (weekday_ + 6) % 7) / 7, 2);
        break;
      case 'y':
        number(t_.year % 100, 2);
        break;
      case 'Y':
        number(t_.year, 1);
        break;
      case 'z':
      case 'Z':
        break;  // a time without zone
      case '%':
        name("%");
        break;
      default:
        return false;
    }
    return true;
  }

  const CivilTime& t_;
  int weekday_ = 0, yearday_ = 0;
  char flag_ = 0;
  int width_ = -1;  // of the field; -1: its own
  std::string out_;
};

}  // namespace

CivilTime local_time_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
#ifdef _WIN32
  localtime_s(&local, &seconds);
#else
  localtime_r(&seconds, &local);
#endif
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return {local.tm_year + 1900,
          local.tm_mon + 1,
          local.tm_mday,
          local.tm_hour,
          local.tm_min,
          local.tm_sec,
          static_cast<int>(since % 1'000'000)};
}

std::string format_time(const CivilTime& time, std::string_view format) { return TimeFormatter(time).run(format); }

}  // namespace hierarchos::jinja
