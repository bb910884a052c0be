// Python's textwrap, as far as the filter wordwrap uses it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hierarchos::jinja {

// The lines of one paragraph, of at most `width` characters. ValueError for a width below 1.
std::vector<std::string> wrap_lines(std::string_view paragraph, int64_t width, bool break_long_words,
                                    bool break_on_hyphens);

}  // namespace hierarchos::jinja
