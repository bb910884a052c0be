#include "template/lexer.h"

#include <algorithm>
#include <cstdlib>

#include "template/text.h"
#include "template/unicode.h"

namespace hierarchos::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Line ends become '\n', and the last one goes.
std::string normalized(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// What stands between the quotes of a literal, as Python decodes it.
class Unescaper {
 public:
  Unescaper(std::string_view s, int line) : s_(s), line_(line) {}

  std::string run() {
    while (at_ < s_.size()) {
      const char c = s_[at_++];
      if (c != '\\' || at_ == s_.size())
        out_ += c;
      else
        escape();
    }
    return std::move(out_);
  }

 private:
  void escape() {
    const size_t begin = at_;
    const char32_t c = text::next(s_, at_);
    switch (c) {
      case '\n':
        return;
      case '\\':
      case '\'':
      case '"':
        text::append(out_, c);
        return;
      case 'a':
        out_ += '\a';
        return;
      case 'b':
        out_ += '\b';
        return;
      case 'f':
        out_ += '\f';
        return;
      case 'n':
        out_ += '\n';
        return;
      case 'r':
        out_ += '\r';
        return;
      case 't':
        out_ += '\t';
        return;
      case 'v':
        out_ += '\v';
        return;
      case 'x':
        hexadecimal(2);
        return;
      case 'u':
        hexadecimal(4);
        return;
      case 'U':
        hexadecimal(8);
        return;
      case 'N':
        throw SyntaxFailure{line_, "characters by name (\\N{…}) are not supported; write \\u and the number"};
      default:
        break;
    }
    if (c >= '0' && c <= '7') {
      char32_t value = c - '0';
      for (int i = 0; i < 2 && at_ < s_.size() && s_[at_] >= '0' && s_[at_] <= '7'; ++i)
        value = value * 8 + static_cast<char32_t>(s_[at_++] - '0');
      text::append(out_, value);
    } else if (c >= 0x80) {
      // The reference writes such a character as an escape before it looks for escapes: the backslash escapes that one.
      out_ += '\\';
      out_ += c < 0x100     ? fmt::format("x{:02x}", static_cast<uint32_t>(c))
              : c < 0x10000 ? fmt::format("u{:04x}", static_cast<uint32_t>(c))
                            : fmt::format("U{:08x}", static_cast<uint32_t>(c));
    } else {
      out_ += '\\';
      out_ += s_.substr(begin, at_ - begin);
    }
  }

  void hexadecimal(size_t digits) {
    const std::string_view hex = s_.substr(at_, digits);
    const bool good = hex.size() == digits && hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (!good) throw SyntaxFailure{line_, "a \\x, \\u or \\U in a string needs 2, 4 or 8 hexadecimal digits"};
    at_ += digits;
    const unsigned long value = std::strtoul(std::string(hex).c_str(), nullptr, 16);
    if (value > 0x10FFFF) throw SyntaxFailure{line_, "illegal Unicode character in a string"};
    text::append(out_, static_cast<char32_t>(value));
  }

  std::string_view s_;
  int line_;
  size_t at_ = 0;
  std::string out_;
};

class Lexer {
 public:
  explicit Lexer(std::string source) : text_(std::move(source)), s_(text_) {}

  std::vector<Token> run() {
    while (at_ < s_.size()) root();
    add(TokenKind::End, "");
    return std::move(tokens_);
  }

 private:
  // Data up to the next tag, then the tag.
  void root() {
    size_t tag = at_;
    while (true) {
      tag = s_.find('{', tag);
      if (tag == std::string_view::npos ||
          (tag + 1 < s_.size() && std::string_view("{%#").find(s_[tag + 1]) != std::string_view::npos))
        break;
      ++tag;
    }
    if (tag == std::string_view::npos) {
      data(s_.size(), s_.size());
      return;
    }
    const char kind = s_[tag + 1];
    size_t after = tag + 2;
    char sign = 0;
    if (after < s_.size() && (s_[after] == '-' || s_[after] == '+')) sign = s_[after++];
    data(data_end(tag, sign, kind == '{'), tag);
    at_ = after;
    line_starting_ = false;
    if (kind == '#')
      comment();
    else if (kind == '%' && raw_begins())
      raw();
    else
      code(kind == '%');
  }

  // Where data in front of a tag ends, given the tag's sign.
  size_t data_end(size_t tag, char sign, bool variable) const {
    const std::string_view data = s_.substr(at_, tag - at_);
    if (sign == '-') return at_ + text::strip(data, false, true).size();
    if (sign == '+' || variable) return tag;
    const size_t newline = data.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (newline == std::string_view::npos && !line_starting_) return tag;
    return text::strip(data.substr(line), true, false).empty() ? at_ + line : tag;
  }

  // Emits data up to `end`; the text goes on at `next`.
  void data(size_t end, size_t next) {
    if (end > at_) add(TokenKind::Data, std::string(s_.substr(at_, end - at_)));
    move_to(next);
  }

  void move_to(size_t to) {
    line_ += static_cast<int>(
        std::count(s_.begin() + static_cast<std::ptrdiff_t>(at_), s_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    if (to > at_) line_starting_ = s_[to - 1] == '\n';
    at_ = to;
  }

  size_t skip_space(size_t from) const {
    const std::string_view rest = s_.substr(from);
    return from + (rest.size() - text::strip(rest, true, false).size());
  }

  // The end of a tag at `from`, such as "-%}" with the white space that it takes; npos when there is none.
  size_t tag_end(size_t from, const char* end, bool plus, bool trim) const {
    const bool minus = s_.substr(from, 1) == "-";
    const size_t sign = minus || (plus && s_.substr(from, 1) == "+") ? 1 : 0;
    if (s_.substr(from + sign, 2) != end) return std::string_view::npos;
    size_t behind = from + sign + 2;
    if (minus) return skip_space(behind);
    if (sign == 0 && trim && behind < s_.size() && s_[behind] == '\n') ++behind;
    return behind;
  }

  void comment() {
    for (size_t i = at_; i < s_.size(); ++i) {
      if (s_[i] != '#' && s_[i] != '-' && s_[i] != '+') continue;
      const size_t end = tag_end(i, "#}", true, true);
      if (end == std::string_view::npos) continue;
      move_to(end);
      return;
    }
    fail("Missing end of comment tag");
  }

  // Is this "raw" and the end of the tag? Goes behind it then.
  bool raw_begins() {
    const size_t word = skip_space(at_);
    if (s_.substr(word, 3) != "raw") return false;
    const size_t end = tag_end(skip_space(word + 3), "%}", false, false);
    if (end == std::string_view::npos) return false;
    move_to(end);
    return true;
  }

  void raw() {
    for (size_t tag = s_.find("{%", at_); tag != std::string_view::npos; tag = s_.find("{%", tag + 1)) {
      size_t word = tag + 2;
      char sign = 0;
      if (word < s_.size() && (s_[word] == '-' || s_[word] == '+')) sign = s_[word++];
      word = skip_space(word);
      if (s_.substr(word, 6) != "endraw") continue;
      const size_t end = tag_end(skip_space(word + 6), "%}", true, true);
      if (end == std::string_view::npos) continue;
      data(data_end(tag, sign, false), tag);
      move_to(end);
      return;
    }
    fail("Missing end of raw directive");
  }

  void code(bool block) {
    add(block ? TokenKind::BlockBegin : TokenKind::VariableBegin, "");
    std::vector<char> open;
    while (at_ < s_.size()) {
      if (open.empty()) {
        const size_t end = block ? tag_end(at_, "%}", true, true) : tag_end(at_, "}}", false, false);
        if (end != std::string_view::npos) {
          add(block ? TokenKind::BlockEnd : TokenKind::VariableEnd, "");
          move_to(end);
          return;
        }
      }
      const size_t space = skip_space(at_);
      if (space > at_)
        move_to(space);
      else
        token(open);
    }
  }

  void token(std::vector<char>& open) {
    if (is_digit(s_[at_]))
      number();
    else if (s_[at_] == '\'' || s_[at_] == '"')
      string();
    else if (!name())
      operation(open);
  }

  // Digits, single underscores between them: their end, or `from` when there are none.
  size_t digits_end(size_t from, const char* digits = "0123456789") const {
    const auto good = [&](size_t i) {
      return i < s_.size() && std::string_view(digits).find(s_[i]) != std::string_view::npos;
    };
    if (!good(from)) return from;
    size_t end = from + 1;
    while (good(end) || (end < s_.size() && s_[end] == '_' && good(end + 1))) ++end;
    return end;
  }

  void number() {
    const size_t whole = digits_end(at_);
    // A float has a fraction, an exponent or both, and does not follow a point (as in x.1.5).
    size_t end = whole;
    if (end < s_.size() && s_[end] == '.' && digits_end(end + 1) > end + 1) end = digits_end(end + 1);
    if (end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
      const size_t sign = end + 1 < s_.size() && (s_[end + 1] == '+' || s_[end + 1] == '-') ? 1 : 0;
      if (digits_end(end + 1 + sign) > end + 1 + sign) end = digits_end(end + 1 + sign);
    }
    if (end > whole && !(at_ > 0 && s_[at_ - 1] == '.')) {
      add_number(Value::number(std::strtod(plain(at_, end).c_str(), nullptr)), end);
      return;
    }
    integer(whole);
  }

  std::string plain(size_t begin, size_t end) const {
    std::string out(s_.substr(begin, end - begin));
    out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
    return out;
  }

  void integer(size_t whole) {
    static constexpr struct {
      char letter;
      int base;
      const char* digits;
    } kBases[] = {{'b', 2, "01"}, {'o', 8, "01234567"}, {'x', 16, "0123456789abcdefABCDEF"}};
    if (s_[at_] == '0') {
      for (const auto& base : kBases) {
        if (at_ + 1 >= s_.size() || (s_[at_ + 1] | 0x20) != base.letter) continue;
        const size_t first = at_ + 2 + (at_ + 2 < s_.size() && s_[at_ + 2] == '_' ? 1 : 0);
        const size_t end = digits_end(first, base.digits);
        if (end == first) continue;
        add_integer(plain(first, end), base.base, end);
        return;
      }
      whole = digits_end(at_, "0");  // a number does not begin with zeros
    }
    add_integer(plain(at_, whole), 10, whole);
  }

  void add_integer(const std::string& digits, int base, size_t end) {
    if (digits.size() > 4300) fail("an integer has more than 4300 digits");
    add_number(Value::integer(*BigInt::parse(digits, base)), end);
  }

  void add_number(Value v, size_t end) {
    add(TokenKind::Number, std::string(s_.substr(at_, end - at_)));
    tokens_.back().number = std::move(v);
    move_to(end);
  }

  void string() {
    const char quote = s_[at_];
    size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != quote) end += s_[end] == '\\' ? 2 : 1;
    if (end >= s_.size()) fail(fmt::format("a string that begins with {} does not end", quote));
    add(TokenKind::String, Unescaper(s_.substr(at_ + 1, end - at_ - 1), line_).run());
    move_to(end + 1);
  }

  bool name() {
    size_t end = at_;
    while (end < s_.size()) {
      size_t next = end;
      const char32_t c = text::next(s_, next);
      if (!unicode::is_word(c) && !unicode::has(c, unicode::kIdentifierPart)) break;
      end = next;
    }
    if (end == at_) return false;
    const std::string_view word = s_.substr(at_, end - at_);
    if (!text::is_identifier(word)) fail("Invalid character in identifier");
    add(TokenKind::Name, std::string(word));
    move_to(end);
    return true;
  }

  void operation(std::vector<char>& open) {
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](std::string_view o) { return s_.substr(at_, o.size()) == o; });
    if (found == std::end(kOperators)) {
      size_t next = at_;
      text::next(s_, next);
      fail(fmt::format("unexpected char '{}'", s_.substr(at_, next - at_)));
    }
    const char c = found->front();
    if (c == '{') open.push_back('}');
    if (c == '(') open.push_back(')');
    if (c == '[') open.push_back(']');
    if (c == '}' || c == ')' || c == ']') {
      if (open.empty()) fail(fmt::format("unexpected '{}'", c));
      if (open.back() != c) fail(fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    add(TokenKind::Operator, std::string(*found));
    move_to(at_ + found->size());
  }

  void add(TokenKind kind, std::string value) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = std::move(value);
    tokens_.push_back(std::move(token));
  }

  [[noreturn]] void fail(const std::string& message) const { throw SyntaxFailure{line_, message}; }

  std::string text_;
  std::string_view s_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // does what comes stand at the beginning of a line?
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace hierarchos::jinja
