#include "template/print.h"

#include <array>
#include <charconv>
#include <cmath>

#include "template/loop.h"
#include "template/macro.h"
#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

// Namespaces may hold themselves, so that nesting has no bound of its own.
constexpr int kDeepest = 400;

class Printer {
 public:
  std::string out;

  void repr(const Value& v) {
    if (++depth_ > kDeepest) fail("RecursionError", "a value that holds itself cannot be printed");
    charge(256);
    check_text_size(out.size());
    switch (v.type()) {
      case Type::Missing:
        out += "missing";
        break;
      case Type::Undefined:
        out += "Undefined";
        break;
      case Type::None:
        out += "None";
        break;
      case Type::Bool:
        out += v.as_bool() ? "True" : "False";
        break;
      case Type::Int:
        out += std::to_string(v.as_int());
        break;
      case Type::BigInt:
        out += v.get<BigIntObject>().value.text();
        break;
      case Type::Float:
        out += float_repr(v.as_float());
        break;
      case Type::Str:
        if (v.is_markup())
          out += "Markup(" + text_repr(v.str()) + ")";
        else
          out += text_repr(v.str());
        break;
      case Type::Bytes:
        bytes(v.str());
        break;
      case Type::List:
        sequence(v.items(), "[", "]");
        break;
      case Type::Tuple:
        sequence(v.items(), "(", v.items().size() == 1 ? ",)" : ")");
        break;
      case Type::Dict:
        dict(v.as_dict().items);
        break;
      default:
        other(v);
    }
    --depth_;
  }

 private:
  void sequence(const Values& items, const char* begin, const char* end) {
    out += begin;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      repr(items[i]);
    }
    out += end;
  }

  void dict(const std::vector<std::pair<Value, Value>>& items) {
    out += "{";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      repr(items[i].first);
      out += ": ";
      repr(items[i].second);
    }
    out += "}";
  }

  void bytes(const std::string& s) {
    const char quote = s.find('\'') != std::string::npos && s.find('"') == std::string::npos ? '"' : '\'';
    out += std::string("b") + quote;
    for (const char c : s) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == quote || c == '\\')
        out += std::string("\\") + c;
      else if (c == '\n')
        out += "\\n";
      else if (c == '\r')
        out += "\\r";
      else if (c == '\t')
        out += "\\t";
      else if (byte < 0x20 || byte >= 0x7F)
        out += fmt::format("\\x{:02x}", byte);
      else
        out += c;
    }
    out += quote;
  }

  // Where Python prints an address, there is none.
  void other(const Value& v) {
    switch (v.type()) {
      case Type::Range: {
        const auto& range = v.get<RangeObject>();
        out += range.step == 1 ? fmt::format("range({}, {})", range.begin, range.end)
                               : fmt::format("range({}, {}, {})", range.begin, range.end, range.step);
        break;
      }
      case Type::View: {
        out += type_name(v);
        sequence(to_values(v), "([", "])");
        break;
      }
      case Type::Namespace:
        out += "<Namespace ";
        dict(v.get<Namespace>().items());
        out += ">";
        break;
      case Type::Function:
        out += fmt::format("<{} {}>", v.get<Function>().self.missing() ? "function" : "built-in method",
                           v.get<Function>().name);
        break;
      case Type::Macro:
        out += v.get<Macro>().repr();
        break;
      case Type::Loop:
        out += v.get<Loop>().repr();
        break;
      case Type::Self:
        out += "<TemplateReference None>";
        break;
      default:
        out += fmt::format("<{} object>", type_name(v));
    }
  }

  int depth_ = 0;
};

}  // namespace

std::string float_repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v, std::chars_format::scientific).ptr;
  std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  std::string out;
  if (text[0] == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  std::string digits(text.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (exponent + 1 >= count) return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

std::string text_repr(std::string_view s) {
  const char quote = s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < s.size();) {
    const char32_t c = text::next(s, at);
    if (c == static_cast<unsigned char>(quote) || c == '\\')
      out += std::string("\\") + static_cast<char>(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (unicode::has(c, unicode::kPrintable))
      text::append(out, c);
    else if (c < 0x100)
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    else if (c < 0x10000)
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    else
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
  return out + quote;
}

std::string repr(const Value& v) {
  Printer printer;
  printer.repr(v);
  check_text_size(printer.out.size());
  charge(printer.out.size());
  return std::move(printer.out);
}

std::string str(const Value& v) {
  if (v.is_text()) return v.str();
  if (v.is_undefined()) return "";
  return repr(v);
}

Value soft_str(const Value& v) { return v.is_text() ? v : Value::text(str(v)); }

std::string escape_html(std::string_view s) {
  std::string out;
  for (const char c : s) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Value escape(const Value& v) { return v.is_markup() ? v : Value::text(escape_html(str(v)), true); }

}  // namespace hierarchos::jinja
