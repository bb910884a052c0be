// Python's string methods on UTF-8. Positions and lengths are in code points unless a name says bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hierarchos::jinja::text {

// The code point at byte `at` of a valid text, which moves behind it. Surrogates are let through.
char32_t next(std::string_view s, size_t& at);
void append(std::string& out, char32_t c);
std::u32string decode(std::string_view s);
std::string encode(std::u32string_view s);
size_t length(std::string_view s);
// Is it UTF-8, with surrogates or without?
bool valid(std::string_view s, bool surrogates);
// The byte where code point `index` begins; s.size() behind the end.
size_t byte_of(std::string_view s, size_t index);
size_t index_of_byte(std::string_view s, size_t byte);

// Where `what` is at or after byte `from`, or last; npos when it is nowhere. Costs steps, so that no template can make
// a search of quadratic time long.
size_t find(std::string_view s, std::string_view what, size_t from = 0);
size_t find_last(std::string_view s, std::string_view what);

bool is_ascii(std::string_view s);
std::string upper(std::string_view s);
std::string lower(std::string_view s);
std::string title(std::string_view s);
std::string capitalize(std::string_view s);
std::string swapcase(std::string_view s);
std::string casefold(std::string_view s);

// Of white space, or of the characters in `characters`.
std::string_view strip(std::string_view s, bool left, bool right);
std::string_view strip(std::string_view s, bool left, bool right, std::string_view characters);

// At runs of white space; a negative maximum is none.
std::vector<std::string> split_space(std::string_view s, int64_t maximum, bool from_right);
std::vector<std::string> split(std::string_view s, std::string_view separator, int64_t maximum, bool from_right);
std::vector<std::string> splitlines(std::string_view s, bool keep_ends);
std::string replace(std::string_view s, std::string_view from, std::string_view to, int64_t maximum);
std::string expand_tabs(std::string_view s, int64_t size);

// A slice as Python takes it, indices already clamped: `count` code points, `step` apart. `ascii`: is all of s?
std::string slice(std::string_view s, int64_t begin, int64_t step, int64_t count, bool ascii);

// isalpha() and the like: not empty, and every character has one of the flags.
bool all(std::string_view s, uint32_t flags);
bool is_cased_as(std::string_view s, uint32_t wanted);  // isupper(), islower()
bool is_title(std::string_view s);
bool is_identifier(std::string_view s);

}  // namespace hierarchos::jinja::text
