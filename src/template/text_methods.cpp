// Methods of str.
#include <algorithm>
#include <map>

#include "template/arguments.h"
#include "template/format.h"
#include "template/methods.h"
#include "template/print.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

Value like(const Value& self, std::string_view s) { return Value::text(std::string(s), self.is_markup()); }

Value like_list(const Value& self, std::vector<std::string> parts) {
  Values out;
  out.reserve(parts.size());
  for (std::string& part : parts) out.push_back(Value::text(std::move(part), self.is_markup()));
  return Value::list(std::move(out));
}

// What a Markup takes in is escaped.
std::string taken_in(const Value& self, const Value& argument, const char* what) {
  text_of(argument, what);
  return self.is_markup() ? escape(argument).str() : argument.str();
}

template <std::string (*F)(std::string_view)>
Value mapped(const Value& self, Arguments& arguments) {
  bind("str method", arguments, {}, 0);
  return like(self, F(self.str()));
}

template <uint32_t Flags>
Value all_are(const Value& self, Arguments& arguments) {
  bind("str method", arguments, {}, 0);
  return Value::boolean(text::all(self.str(), Flags));
}

template <uint32_t Case>
Value cased(const Value& self, Arguments& arguments) {
  bind("str method", arguments, {}, 0);
  return Value::boolean(text::is_cased_as(self.str(), Case));
}

template <bool Left, bool Right>
Value strip(const Value& self, Arguments& arguments) {
  const Values a = bind("strip", arguments, {"chars"}, 0, 1);
  if (a[0].missing() || a[0].is_none()) return like(self, text::strip(self.str(), Left, Right));
  return like(self, text::strip(self.str(), Left, Right, text_of(a[0], "strip arg")));
}

template <bool FromRight>
Value split(const Value& self, Arguments& arguments) {
  const Values a = bind("split", arguments, {"sep", "maxsplit"}, 0);
  const int64_t maximum = integer_or(a[1], -1);
  if (a[0].missing() || a[0].is_none()) return like_list(self, text::split_space(self.str(), maximum, FromRight));
  const std::string& separator = text_of(a[0], "separator");
  if (separator.empty()) value_error("empty separator");
  return like_list(self, text::split(self.str(), separator, maximum, FromRight));
}

template <bool FromRight>
Value partition(const Value& self, Arguments& arguments) {
  const Values a = bind("partition", arguments, {"sep"}, 1, 1);
  const std::string& separator = text_of(a[0], "separator");
  if (separator.empty()) value_error("empty separator");
  const std::string_view s = self.str();
  const size_t at = FromRight ? text::find_last(s, separator) : text::find(s, separator);
  if (at == std::string_view::npos)
    return FromRight ? Value::tuple({like(self, ""), like(self, ""), self})
                     : Value::tuple({self, like(self, ""), like(self, "")});
  return Value::tuple(
      {like(self, s.substr(0, at)), like(self, separator), like(self, s.substr(at + separator.size()))});
}

Value splitlines(const Value& self, Arguments& arguments) {
  const Values a = bind("splitlines", arguments, {"keepends"}, 0);
  return like_list(self, text::splitlines(self.str(), truth_or(a[0], false)));
}

Value replace(const Value& self, Arguments& arguments) {
  const Values a = bind("replace", arguments, {"old", "new", "count"}, 2, 3);
  const std::string to = taken_in(self, a[1], "replace() argument 2");
  return like(self, text::replace(self.str(), text_of(a[0], "replace() argument 1"), to, integer_or(a[2], -1)));
}

// The part of a text between two indices, and the index where it begins; nullopt when the first is behind the end.
struct Part {
  std::string_view text;
  int64_t begin;
};
std::optional<Part> part_of(const Value& self, const Value& begin_value, const Value& end_value) {
  const auto length = static_cast<int64_t>(self.text_object().length);
  const auto index = [&](const Value& v, int64_t fallback) {
    const int64_t i = v.is_none() ? fallback : integer_or(v, fallback);
    return std::max<int64_t>(0, i < 0 ? (i < -length ? 0 : i + length) : i);
  };
  const int64_t begin = index(begin_value, 0), end = std::min(index(end_value, length), length);
  if (begin > length || begin > end) return std::nullopt;
  const std::string_view s = self.str();
  if (begin == 0 && end == length) return Part{s, 0};
  const size_t from = text::byte_of(s, static_cast<size_t>(begin));
  const std::string_view rest = s.substr(from);
  return Part{rest.substr(0, text::byte_of(rest, static_cast<size_t>(end - begin))), begin};
}

template <bool FromRight, bool Must>
Value find(const Value& self, Arguments& arguments) {
  const Values a = bind("find", arguments, {"sub", "start", "end"}, 1, 3);
  const std::string& sub = text_of(a[0], "find() argument 1");
  if (const auto part = part_of(self, a[1], a[2])) {
    const size_t at = FromRight ? text::find_last(part->text, sub) : text::find(part->text, sub);
    if (at != std::string_view::npos)
      return Value::integer(part->begin + static_cast<int64_t>(text::index_of_byte(part->text, at)));
  }
  if (Must) value_error("substring not found");
  return Value::integer(-1);
}

Value count(const Value& self, Arguments& arguments) {
  const Values a = bind("count", arguments, {"sub", "start", "end"}, 1, 3);
  const std::string& sub = text_of(a[0], "count() argument 1");
  const auto part = part_of(self, a[1], a[2]);
  if (!part) return Value::integer(0);
  if (sub.empty()) return Value::integer(static_cast<int64_t>(text::length(part->text)) + 1);
  int64_t found = 0;
  for (size_t at = text::find(part->text, sub); at != std::string_view::npos;
       at = text::find(part->text, sub, at + sub.size()))
    ++found;
  return Value::integer(found);
}

template <bool End>
Value begins_or_ends(const Value& self, Arguments& arguments) {
  const Values a = bind(End ? "endswith" : "startswith", arguments, {"prefix", "start", "end"}, 1, 3);
  const Values wanted = a[0].is(Type::Tuple) ? a[0].items() : Values{a[0]};
  const auto part = part_of(self, a[1], a[2]);
  for (const Value& w : wanted) {
    if (!w.is_text())
      type_error("{} first arg must be str or a tuple of str, not {}", End ? "endswith" : "startswith", type_name(w));
    if (!part) continue;
    const std::string_view s = part->text, affix = w.str();
    if (s.size() >= affix.size() && s.substr(End ? s.size() - affix.size() : 0, affix.size()) == affix)
      return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <char Align>
Value justify(const Value& self, Arguments& arguments) {
  const Values a = bind("justify", arguments, {"width", "fillchar"}, 1, 2);
  const int64_t width = integer_or(a[0], 0);
  const std::string fill = a[1].missing() ? " " : taken_in(self, a[1], "The fill character");
  if (text::length(fill) != 1) type_error("The fill character must be exactly one character long");
  const auto length = static_cast<int64_t>(self.text_object().length);
  if (width <= length) return self;
  check_text_size(static_cast<size_t>(width));
  const int64_t room = width - length;
  // Python's str.center puts the odd one on the left where the width is odd.
  const int64_t left = Align == '<' ? 0 : Align == '>' ? room : room / 2 + (room & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.str();
  for (int64_t i = left; i < room; ++i) out += fill;
  return like(self, out);
}

Value zfill(const Value& self, Arguments& arguments) {
  const Values a = bind("zfill", arguments, {"width"}, 1, 1);
  const int64_t width = integer_or(a[0], 0);
  const auto length = static_cast<int64_t>(self.text_object().length);
  if (width <= length) return self;
  check_text_size(static_cast<size_t>(width));
  std::string out = self.str();
  const bool sign = !out.empty() && (out[0] == '-' || out[0] == '+');
  out.insert(sign ? 1 : 0, static_cast<size_t>(width - length), '0');
  return like(self, out);
}

template <bool Suffix>
Value remove_affix(const Value& self, Arguments& arguments) {
  const Values a = bind("removeprefix", arguments, {"affix"}, 1, 1);
  const std::string_view s = self.str(), affix = text_of(a[0], "argument");
  if (s.size() < affix.size() || s.substr(Suffix ? s.size() - affix.size() : 0, affix.size()) != affix) return self;
  return like(self, Suffix ? s.substr(0, s.size() - affix.size()) : s.substr(affix.size()));
}

Value expandtabs(const Value& self, Arguments& arguments) {
  const Values a = bind("expandtabs", arguments, {"tabsize"}, 0);
  const int64_t size = integer_or(a[0], 8);
  if (size > INT32_MAX || size < INT32_MIN) fail("OverflowError", "Python int too large to convert to C int");
  return like(self, text::expand_tabs(self.str(), size));
}

Value join(const Value& self, Arguments& arguments) {
  const Values a = bind("join", arguments, {"iterable"}, 1, 1);
  const auto items = try_iterate(a[0]);
  if (!items) type_error("can only join an iterable");
  std::string out;
  for (size_t i = 0; std::optional<Value> item = items->next(); ++i) {
    if (!self.is_markup() && !item->is_text())
      type_error("sequence item {}: expected str instance, {} found", i, type_name(*item));
    if (i > 0) out += self.str();
    out += self.is_markup() ? escape(*item).str() : item->str();
    check_text_size(out.size());
  }
  return like(self, out);
}

Value encode(const Value& self, Arguments& arguments) {
  const Values a = bind("encode", arguments, {"encoding", "errors"}, 0);
  const std::string encoding = a[0].missing() ? "utf-8" : text::lower(text_of(a[0], "encode() argument 'encoding'"));
  const bool ascii = encoding == "ascii" || encoding == "us-ascii";
  if (!ascii && encoding != "utf-8" && encoding != "utf8")
    fail("LookupError", "the encoding {} is not supported; utf-8 and ascii are", encoding);
  if (ascii ? !self.text_object().ascii() : !text::valid(self.str(), false))
    fail("UnicodeEncodeError", "the text cannot be encoded as {}", encoding);
  return Value::bytes(self.str());
}

Value format(const Value& self, Arguments& arguments) { return brace_format(self, arguments); }

Value format_map(const Value& self, Arguments& arguments) {
  const Values a = bind("format_map", arguments, {"mapping"}, 1, 1);
  if (!a[0].is(Type::Dict)) type_error("format_map() needs a dict, not {}", type_name(a[0]));
  Arguments fields;
  for (const auto& [key, value] : a[0].as_dict().items)
    if (key.is_text()) fields.named.emplace_back(key.str(), value);
  return brace_format(self, fields);
}

Value is_ascii(const Value& self, Arguments& arguments) {
  bind("isascii", arguments, {}, 0);
  return Value::boolean(self.text_object().ascii());
}
Value is_title(const Value& self, Arguments& arguments) {
  bind("istitle", arguments, {}, 0);
  return Value::boolean(text::is_title(self.str()));
}
Value is_identifier(const Value& self, Arguments& arguments) {
  bind("isidentifier", arguments, {}, 0);
  return Value::boolean(text::is_identifier(self.str()));
}
Value is_printable(const Value& self, Arguments& arguments) {
  bind("isprintable", arguments, {}, 0);
  return Value::boolean(self.str().empty() || text::all(self.str(), unicode::kPrintable));
}

}  // namespace

MethodBody text_method(const std::string& name) {
  static const std::map<std::string, MethodBody> kMethods = {
      {"capitalize", mapped<text::capitalize>},
      {"casefold", mapped<text::casefold>},
      {"center", justify<'^'>},
      {"count", count},
      {"encode", encode},
      {"endswith", begins_or_ends<true>},
      {"expandtabs", expandtabs},
      {"find", find<false, false>},
      {"format", format},
      {"format_map", format_map},
      {"index", find<false, true>},
      {"isalnum", all_are<unicode::kAlpha | unicode::kDecimal | unicode::kDigit | unicode::kNumeric>},
      {"isalpha", all_are<unicode::kAlpha>},
      {"isascii", is_ascii},
      {"isdecimal", all_are<unicode::kDecimal>},
      {"isdigit", all_are<unicode::kDigit>},
      {"isidentifier", is_identifier},
      {"islower", cased<unicode::kLower>},
      {"isnumeric", all_are<unicode::kNumeric>},
      {"isprintable", is_printable},
      {"isspace", all_are<unicode::kSpace>},
      {"istitle", is_title},
      {"isupper", cased<unicode::kUpper>},
      {"join", join},
      {"ljust", justify<'<'>},
      {"lower", mapped<text::lower>},
      {"lstrip", strip<true, false>},
      {"partition", partition<false>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"replace", replace},
      {"rfind", find<true, false>},
      {"rindex", find<true, true>},
      {"rjust", justify<'>'>},
      {"rpartition", partition<true>},
      {"rsplit", split<true>},
      {"rstrip", strip<false, true>},
      {"split", split<false>},
      {"splitlines", splitlines},
      {"startswith", begins_or_ends<false>},
      {"strip", strip<true, true>},
      {"swapcase", mapped<text::swapcase>},
      {"title", mapped<text::title>},
      {"upper", mapped<text::upper>},
      {"zfill", zfill},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace hierarchos::jinja
