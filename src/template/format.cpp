#include "template/format.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "template/interpreter.h"
#include "template/print.h"
#include "template/text.h"

namespace hierarchos::jinja {
namespace {

constexpr int kWidest = 16 << 20;

// [[fill]align][sign][z][#][0][width][grouping][.precision][type]
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > = ^
  char sign = '-';
  bool no_negative_zero = false, alternate = false;
  int width = -1;
  char grouping = 0;
  int precision = -1;
  char type = 0;
};

int parse_number(std::string_view s, size_t& at) {
  if (at == s.size() || s[at] < '0' || s[at] > '9') return -1;
  int value = 0;
  for (; at < s.size() && s[at] >= '0' && s[at] <= '9'; ++at) {
    value = value * 10 + (s[at] - '0');
    if (value > kWidest) value_error("Too many decimal digits in format string");
  }
  return value;
}

bool one_of(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }

Spec parse_spec(std::string_view s) {
  Spec spec;
  size_t at = 0;
  const auto peek = [&] { return at < s.size() ? s[at] : '\0'; };
  const auto take = [&](char c) { return peek() == c && at < s.size() && ++at != 0; };
  if (!s.empty()) {
    size_t behind = 0;
    text::next(s, behind);
    if (behind < s.size() && one_of("<>=^", s[behind])) {
      spec.fill = s.substr(0, behind);
      spec.align = s[behind];
      at = behind + 1;
    } else if (one_of("<>=^", s[0])) {
      spec.align = s[at++];
    }
  }
  if (at < s.size() && one_of("+- ", s[at])) spec.sign = s[at++];
  spec.no_negative_zero = take('z');
  spec.alternate = take('#');
  if (take('0') && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = parse_number(s, at);
  if (at < s.size() && one_of(",_", s[at])) spec.grouping = s[at++];
  if (at < s.size() && one_of(",_", s[at])) value_error("Cannot specify both ',' and '_'.");
  if (take('.')) {
    spec.precision = parse_number(s, at);
    if (spec.precision < 0) value_error("Format specifier missing precision");
  }
  if (s.size() - at > 1) value_error("Invalid format specifier '{}'", s);
  if (at < s.size()) spec.type = s[at];
  return spec;
}

std::string grouped(const std::string& digits, char separator, size_t every) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out += separator;
    out += digits[i];
  }
  return out;
}

std::string padded(const std::string& body, const Spec& spec, char default_align) {
  const auto length = static_cast<int>(text::length(body));
  if (length >= spec.width) return body;
  check_text_size(static_cast<size_t>(spec.width) * spec.fill.size());
  const auto room = static_cast<size_t>(spec.width - length);
  const char align = spec.align != 0 ? spec.align : default_align;
  const size_t left = align == '<' ? 0 : align == '^' ? room / 2 : room;
  std::string out;
  for (size_t i = 0; i < left; ++i) out += spec.fill;
  out += body;
  for (size_t i = left; i < room; ++i) out += spec.fill;
  return out;
}

// Sign and prefix, digits, and what follows them (a fraction, an exponent), put together and padded.
std::string number_field(const std::string& prefix, std::string digits, const std::string& rest, const Spec& spec) {
  const size_t every = one_of("boxX", spec.type) && spec.type != 0 ? 4 : 3;
  const auto whole = [&] { return spec.grouping != 0 ? grouped(digits, spec.grouping, every) : digits; };
  if (spec.align == '=') {
    const size_t others = prefix.size() + rest.size();
    if (spec.fill == "0") {  // zeros are digits, and grouped as such
      if (spec.width > 0) check_text_size(static_cast<size_t>(spec.width));
      if (spec.grouping == 0) {
        if (spec.width > 0 && digits.size() + others < static_cast<size_t>(spec.width))
          digits.insert(0, static_cast<size_t>(spec.width) - digits.size() - others, '0');
      } else {
        const auto length = [&](size_t n) { return n + (n - 1) / every; };
        size_t n = digits.size();
        while (spec.width > 0 && length(n) + others < static_cast<size_t>(spec.width)) ++n;
        digits.insert(0, n - digits.size(), '0');
      }
      return prefix + whole() + rest;
    }
    Spec inner = spec;
    inner.width = spec.width - static_cast<int>(prefix.size());
    inner.align = '>';
    return prefix + padded(whole() + rest, inner, '>');
  }
  return padded(prefix + whole() + rest, spec, '>');
}

std::string sign_text(bool negative, char sign) { return negative ? "-" : sign == '-' ? "" : std::string(1, sign); }

std::string format_text(const std::string& s, const Spec& spec) {
  if (spec.type != 0 && spec.type != 's') value_error("Unknown format code '{}' for object of type 'str'", spec.type);
  if (spec.sign != '-') value_error("Sign not allowed in string format specifier");
  if (spec.alternate) value_error("Alternate form (#) not allowed in string format specifier");
  if (spec.grouping != 0) value_error("Cannot specify '{}' with 's'.", spec.grouping);
  if (spec.align == '=' && spec.fill != "0") value_error("'=' alignment not allowed in string format specifier");
  Spec plain = spec;
  if (plain.align == '=') plain.align = '<';
  const auto length = static_cast<int>(text::length(s));
  if (spec.precision >= 0 && spec.precision < length)
    return padded(text::slice(s, 0, 1, spec.precision, text::is_ascii(s)), plain, '<');
  return padded(s, plain, '<');
}

std::string format_float_value(double v, const Spec& spec) {
  char letter = spec.type == 'n' ? 'g' : spec.type;
  if (letter != 0 && !one_of("eEfFgG%", letter))
    value_error("Unknown format code '{}' for object of type 'float'", letter);
  if (letter == '%') v *= 100;
  std::string body;
  if (letter == 0 && spec.precision < 0) {
    body = float_repr(std::fabs(v));
  } else if (letter == 0) {
    body = format_float(std::fabs(v), 'g', std::max(spec.precision, 1), spec.alternate);
    // As the letter g, but with a digit behind the point, and an exponent from one digit earlier.
    const bool plain = body.find_first_of("e.ni") == std::string::npos;
    if (plain) {
      if (static_cast<int>(body.size()) >= std::max(spec.precision, 1))
        body = format_float(std::fabs(v), 'e', std::max(spec.precision, 1) - 1, spec.alternate);
      else
        body += ".0";
      const size_t e = body.find('e');
      if (e != std::string::npos && body.find('.') != std::string::npos && !spec.alternate) {  // drop zeros as g does
        size_t end = e;
        while (body[end - 1] == '0') --end;
        if (body[end - 1] == '.') --end;
        body.erase(end, e - end);
      }
    }
  } else {
    body = format_float(std::fabs(v), letter == '%' ? 'f' : letter, spec.precision < 0 ? 6 : spec.precision,
                        spec.alternate);
  }
  bool negative = std::signbit(v) && !std::isnan(v);
  if (spec.no_negative_zero && negative && body.find_first_of("123456789ni") == std::string::npos) negative = false;
  if (letter == '%') body += '%';
  size_t end = 0;
  while (end < body.size() && body[end] >= '0' && body[end] <= '9') ++end;
  if (end == 0) {  // inf, nan
    Spec plain = spec;
    plain.grouping = 0;
    if (plain.align == '=' && plain.fill == "0") return number_field(sign_text(negative, spec.sign), body, "", plain);
    return number_field(sign_text(negative, spec.sign), "", body, plain);
  }
  return number_field(sign_text(negative, spec.sign), body.substr(0, end), body.substr(end), spec);
}

std::string format_integer(const Value& v, const Spec& spec) {
  if (spec.type != 0 && one_of("eEfFgG%", spec.type)) return format_float_value(to_double(v), spec);
  if (spec.precision >= 0) value_error("Precision not allowed in integer format specifier");
  if (spec.no_negative_zero) value_error("Negative zero coercion (z) not allowed in integer format specifier");
  if (spec.type == 'c') {
    if (spec.sign != '-') value_error("Sign not allowed with integer format specifier 'c'");
    if (spec.grouping != 0) value_error("Cannot specify '{}' with 'c'.", spec.grouping);
    const auto c = big(v).small();
    if (!c || *c < 0 || *c > 0x10FFFF) fail("OverflowError", "%c arg not in range(0x110000)");
    std::string s;
    text::append(s, static_cast<char32_t>(*c));
    return padded(s, spec, '<');
  }
  int base = 10;
  if (spec.type == 'b') base = 2;
  if (spec.type == 'o') base = 8;
  if (spec.type == 'x' || spec.type == 'X') base = 16;
  if (spec.type != 0 && !one_of("bodxXn", spec.type))
    value_error("Unknown format code '{}' for object of type 'int'", spec.type);
  if (spec.grouping == ',' && base != 10) value_error("Cannot specify ',' with '{}'.", spec.type);
  const BigInt value = big(v);
  if (base != 10) charge(value.digits() * value.digits() * 4);
  std::string digits = (value.negative() ? -value : value).text(base);
  std::string prefix = sign_text(value.negative(), spec.sign);
  if (spec.alternate && base != 10) prefix += std::string("0") + spec.type;
  if (spec.type == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return number_field(prefix, digits, "", spec);
}

}  // namespace

std::string format_float(double v, char letter, int precision, bool alternate) {
  if (std::isnan(v) || std::isinf(v)) {
    const std::string name = std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
    return letter >= 'a' ? name : text::upper(name);
  }
  check_text_size(static_cast<size_t>(precision));
  const char format[] = {
      '%', alternate ? '#' : '.', alternate ? '.' : '*', alternate ? '*' : letter, alternate ? letter : '\0', '\0'};
  const auto write = [&](char* to, size_t size) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return static_cast<size_t>(std::snprintf(to, size, format, precision, v));
#pragma GCC diagnostic pop
  };
  std::string out(write(nullptr, 0) + 1, '\0');
  write(out.data(), out.size());
  out.pop_back();
  return out;
}

std::string format_value(const Value& v, std::string_view spec_text) {
  if (spec_text.empty()) return str(v);
  if (v.is_text()) return format_text(v.str(), parse_spec(spec_text));
  if (v.is(Type::Float)) return format_float_value(v.as_float(), parse_spec(spec_text));
  if (v.is_integral()) return format_integer(v, parse_spec(spec_text));
  type_error("unsupported format string passed to {}.__format__", type_name(v));
}

namespace {

// The arguments of a % operator, taken one by one or by name.
class PercentFormatter {
 public:
  PercentFormatter(const Value& format, const Value& argument)
      : markup_(format.is_markup()), f_(format.str()), argument_(argument) {
    if (argument.is(Type::Tuple))
      arguments_ = argument.items();
    else
      arguments_ = {argument};
    // What can be indexed is taken for a mapping, and need not be used up.
    by_name_ = argument.is(Type::Dict) || argument.is(Type::List) || argument.is(Type::Range) ||
               argument.is(Type::Bytes) || argument.is_undefined();
  }

  std::string run() {
    while (at_ < f_.size()) {
      if (f_[at_] != '%') {
        out_ += f_[at_++];
        continue;
      }
      ++at_;
      field();
      check_text_size(out_.size());
    }
    if (next_ < arguments_.size() && !by_name_) type_error("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char peek() const {
    if (at_ >= f_.size()) value_error("incomplete format");
    return f_[at_];
  }

  Value take() {
    if (next_ == arguments_.size()) type_error("not enough arguments for format string");
    return arguments_[next_++];
  }

  void field() {
    Spec spec;
    std::optional<Value> named;
    if (peek() == '(') named = named_argument();
    bool left = false, zero = false;
    for (;; ++at_) {
      const char c = peek();
      if (c == '-')
        left = true;
      else if (c == '+')
        spec.sign = '+';
      else if (c == ' ')
        spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (c == '#')
        spec.alternate = true;
      else if (c == '0')
        zero = true;
      else
        break;
    }
    spec.width = size_argument();
    if (spec.width < -1) {
      left = true;
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max(size_argument(), 0);
    }
    if (one_of("hlL", peek())) ++at_;
    const char type = peek();
    ++at_;
    if (type == '%') {
      out_ += '%';
      return;
    }
    const Value v = named ? *named : take();
    spec.align = left ? '<' : '>';
    if (zero && !left && one_of("diuoxXeEfFgG", type)) {
      spec.fill = "0";
      spec.align = '=';
    }
    convert(v, type, spec);
  }

  Value named_argument() {
    if (!argument_.is(Type::Dict)) type_error("format requires a mapping");
    int depth = 1;
    const size_t begin = ++at_;
    for (; depth > 0; ++at_) {
      if (at_ >= f_.size()) value_error("incomplete format key");
      depth += f_[at_] == '(' ? 1 : f_[at_] == ')' ? -1 : 0;
    }
    const std::string key(f_.substr(begin, at_ - begin - 1));
    const Value* found = argument_.as_dict().find(key);
    if (found == nullptr) fail("KeyError", "{}", text_repr(key));
    return *found;
  }

  int size_argument() {
    if (peek() != '*') {
      const int size = parse_number(f_, at_);
      return size;
    }
    ++at_;
    const Value v = take();
    if (!v.is_integral()) type_error("* wants int");
    const auto size = big(v).small();
    if (!size || std::abs(*size) > kWidest) fail("OverflowError", "Python int too large to convert to C int");
    return *size == -1 ? -2 : static_cast<int>(*size);
  }

  void convert(const Value& v, char type, Spec spec) {
    switch (type) {
      case 's':
      case 'r':
      case 'a': {
        std::string s = type == 's' ? str(v) : repr(v);
        if (type == 'a') s = ascii(s);
        if (markup_ && !(type == 's' && v.is_markup())) s = escape_html(s);
        out_ += format_text(s, spec);
        return;
      }
      case 'd':
      case 'i':
      case 'u': {
        if (!v.is_number()) type_error("%{} format: a real number is required, not {}", type, type_name(v));
        if (v.is(Type::Float) && std::isnan(v.as_float())) value_error("cannot convert float NaN to integer");
        if (v.is(Type::Float) && std::isinf(v.as_float()))
          fail("OverflowError", "cannot convert float infinity to integer");
        integer(v.is(Type::Float) ? BigInt::truncate(v.as_float()) : big(v), 'd', spec);
        return;
      }
      case 'o':
      case 'x':
      case 'X':
        if (!v.is_integral()) type_error("%{} format: an integer is required, not {}", type, type_name(v));
        integer(big(v), type, spec);
        return;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (v.is_undefined()) fail_undefined(v);
        if (!v.is_number()) type_error("must be real number, not {}", type_name(v));
        spec.type = type;
        out_ += format_float_value(to_double(v), spec);
        return;
      case 'c': {
        Value c = v;
        if (v.is_integral()) {
          spec.type = 'c';
          spec.precision = -1;
          out_ += format_integer(v, spec);
          return;
        }
        if (!v.is_text() || v.text_object().length != 1) type_error("%c requires int or char");
        spec.precision = -1;
        out_ += format_text(v.str(), spec);
        return;
      }
      default:
        value_error("unsupported format character '{}' (0x{:x}) at index {}", type, static_cast<unsigned char>(type),
                    at_ - 1);
    }
  }

  // With a precision, which is a least number of digits.
  void integer(const BigInt& v, char type, const Spec& spec) {
    const int base = type == 'o' ? 8 : type == 'd' ? 10 : 16;
    if (base != 10) charge(v.digits() * v.digits() * 4);
    std::string digits = (v.negative() ? -v : v).text(base);
    if (spec.precision > static_cast<int>(digits.size())) {
      check_text_size(static_cast<size_t>(spec.precision));
      digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
    }
    std::string prefix = sign_text(v.negative(), spec.sign);
    if (spec.alternate && base != 10) prefix += std::string("0") + type;
    if (type == 'X') digits = text::upper(digits);
    out_ += number_field(prefix, digits, "", spec);
  }

  static std::string ascii(const std::string& s) {
    std::string out;
    for (size_t at = 0; at < s.size();) {
      const char32_t c = text::next(s, at);
      if (c < 0x80)
        out += static_cast<char>(c);
      else
        out += c < 0x100     ? fmt::format("\\x{:02x}", static_cast<uint32_t>(c))
               : c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<uint32_t>(c))
                             : fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
    return out;
  }

  bool markup_;
  std::string_view f_;
  const Value& argument_;
  Values arguments_;
  bool by_name_ = false;
  size_t next_ = 0, at_ = 0;
  std::string out_;
};

// str.format, with fields inside the specifications of fields, one deep.
class BraceFormatter {
 public:
  BraceFormatter(const Arguments& arguments, bool markup) : arguments_(arguments), markup_(markup) {}

  std::string run(std::string_view f, int depth) {
    if (depth < 0) value_error("Max string recursion exceeded");
    std::string out;
    for (size_t at = 0; at < f.size();) {
      const char c = f[at++];
      const bool twice = at < f.size() && f[at] == c;
      if (c != '{' && c != '}') {
        out += c;
      } else if (twice) {
        out += c;
        ++at;
      } else if (c == '}') {
        value_error("Single '}}' encountered in format string");
      } else {
        out += field(take_field(f, at), depth);
        check_text_size(out.size());
      }
    }
    return out;
  }

 private:
  static std::string_view take_field(std::string_view f, size_t& at) {
    const size_t begin = at;
    int open = 1;
    bool bracket = false;  // inside [ ] braces are text
    for (; at < f.size(); ++at) {
      if (f[at] == '[') bracket = true;
      if (f[at] == ']') bracket = false;
      if (bracket) continue;
      if (f[at] == '{') ++open;
      if (f[at] == '}' && --open == 0) return f.substr(begin, at++ - begin);
    }
    if (begin == f.size()) value_error("Single '{{' encountered in format string");
    value_error("expected '}}' before end of string");
  }

  std::string field(std::string_view f, int depth) {
    size_t end = 0;
    bool bracket = false;
    for (; end < f.size(); ++end) {
      if (f[end] == '[') bracket = true;
      if (f[end] == ']') bracket = false;
      if (!bracket && (f[end] == '!' || f[end] == ':')) break;
    }
    Value v = look_up(f.substr(0, end));
    if (end < f.size() && f[end] == '!') {
      if (end + 1 >= f.size()) value_error("unmatched '{{' in format spec");
      const char conversion = f[end + 1];
      if (end + 2 < f.size() && f[end + 2] != ':') value_error("expected ':' after conversion specifier");
      if (conversion == 's')
        v = Value::text(str(v));
      else if (conversion == 'r')
        v = Value::text(repr(v));
      else
        value_error("Unknown conversion specifier {}", conversion);
      end = std::min(end + 2, f.size());
    }
    const std::string spec = run(end < f.size() ? f.substr(end + 1) : std::string_view(), depth - 1);
    if (!markup_) return format_value(v, spec);
    if (v.is_markup()) {
      if (!spec.empty()) value_error("Unsupported format specification for Markup.");
      return v.str();
    }
    return escape_html(format_value(v, spec));
  }

  static bool all_digits(std::string_view s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
  }

  Value positional(std::string_view digits) {
    const size_t index = digits.size() > 9 ? SIZE_MAX : std::stoul(std::string(digits));
    if (index >= arguments_.positional.size())
      fail("IndexError", "Replacement index {} out of range for positional args tuple", digits);
    return arguments_.positional[index];
  }

  Value first(std::string_view name, bool whole) {
    if (name.empty() && whole) {
      if (manual_) value_error("cannot switch from manual field specification to automatic field numbering");
      automatic_ = true;
      return positional(std::to_string(next_++));
    }
    if (all_digits(name)) {
      if (whole && automatic_)
        value_error("cannot switch from manual field specification to automatic field numbering");
      manual_ = manual_ || whole;
      return positional(name);
    }
    charge(arguments_.named.size() * 16);
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    fail("KeyError", "{}", text_repr(name));
  }

  Value look_up(std::string_view f) {
    size_t at = std::min(f.find_first_of(".["), f.size());
    Value v = first(f.substr(0, at), at == f.size());
    while (at < f.size()) {
      if (f[at] == '.') {
        const size_t end = std::min(f.find_first_of(".[", at + 1), f.size());
        if (end == at + 1) value_error("Empty attribute in format string");
        v = get_attribute(v, std::string(f.substr(at + 1, end - at - 1)));
        at = end;
      } else if (f[at] == '[') {
        const size_t end = f.find(']', at);
        if (end == std::string_view::npos) value_error("Missing ']' in format string");
        const std::string_view key = f.substr(at + 1, end - at - 1);
        if (key.empty()) value_error("Empty attribute in format string");
        v = get_item(v, all_digits(key) ? Value::integer(*BigInt::parse(key)) : Value::text(std::string(key)));
        at = end + 1;
      } else {
        value_error("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return v;
  }

  const Arguments& arguments_;
  bool markup_;
  bool automatic_ = false, manual_ = false;
  size_t next_ = 0;
};

}  // namespace

Value percent_format(const Value& format, const Value& argument) {
  return Value::text(PercentFormatter(format, argument).run(), format.is_markup());
}

Value brace_format(const Value& format, const Arguments& arguments) {
  return Value::text(BraceFormatter(arguments, format.is_markup()).run(format.str(), 2), format.is_markup());
}

}  // namespace hierarchos::jinja
