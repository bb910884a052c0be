// Names that come from files, as errors show them.
#pragma once

#include <string>
#include <string_view>

namespace hierarchos::formats {

// Control characters are escaped (a name must not steer a terminal), what is longer than a line is cut.
std::string shown(std::string_view name);

}  // namespace hierarchos::formats
