#include "tokenizer/unicode.h"

#include <oniguruma.h>
#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/utf8.h"

namespace hierarchos::unicode {
namespace {

void initialize() {
  static const int once = [] {
    OnigEncoding utf8 = ONIG_ENCODING_UTF8;
    return onig_initialize(&utf8, 1);
  }();
  (void)once;
}

// -1 where this version of Oniguruma does not know the name.
int class_number(const char* name) {
  initialize();
  const auto* begin = reinterpret_cast<const OnigUChar*>(name);
  const auto* end = begin + std::char_traits<char>::length(name);
  return ONIGENC_PROPERTY_NAME_TO_CTYPE(ONIG_ENCODING_UTF8, const_cast<OnigUChar*>(begin), const_cast<OnigUChar*>(end));
}

bool holds(int number, char32_t c) { return number >= 0 && ONIGENC_IS_CODE_CTYPE(ONIG_ENCODING_UTF8, c, number); }

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// As BERT's normalizer lists them: not U+2B820 to U+2B91F.
bool is_cjk(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

uint32_t category_flags(char32_t c, const utf8proc_property_t& property) {
  uint32_t f = 0;
  switch (property.category) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      f |= kNumeric;
      break;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      f |= kPunctuation;
      break;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
      f |= kControl;
      break;
    case UTF8PROC_CATEGORY_MN:
      f |= kMarkNonspacing | kMark;
      break;
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      f |= kMark;
      break;
    default:
      break;
  }
  const bool graphic_ascii = c > 0x20 && c < 0x7F;
  const bool alphanumeric = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  if (graphic_ascii && !alphanumeric) f |= kPunctuation;
  return f;
}

// Is the normal form of the character alone itself?
bool keeps(char32_t c, bool compatible, bool compose) {
  char bytes[4];
  const std::string_view text(bytes, static_cast<size_t>(put(c, bytes) - bytes));
  std::vector<Change> changes;
  normalize(text, compatible, compose, changes);
  return changes.size() == 1 && changes[0].first == c;
}

uint32_t flags_of(char32_t c) {
  if (c >= 0xD800 && c <= 0xDFFF) return 0;
  struct Class {
    uint32_t flag;
    int number;
  };
  static const std::array<Class, 15> kClasses = {{{kLetter, class_number("L")},
                                                  {kNumber, class_number("N")},
                                                  {kSpace, ONIGENC_CTYPE_SPACE},
                                                  {kUpper, class_number("Lu")},
                                                  {kLower, class_number("Ll")},
                                                  {kTitle, class_number("Lt")},
                                                  {kModifierLetter, class_number("Lm")},
                                                  {kOtherLetter, class_number("Lo")},
                                                  {kMarkClass, class_number("M")},
                                                  {kWord, class_number("Alphabetic")},
                                                  {kWord, class_number("M")},
                                                  {kWord, class_number("Nd")},
                                                  {kWord, class_number("Pc")},
                                                  {kWord, class_number("Join_Control")},
                                                  {0, 0}}};
  uint32_t f = 0;
  for (const Class& k : kClasses)
    if (k.flag && holds(k.number, c)) f |= k.flag;
  const utf8proc_property_t& property = *utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  f |= category_flags(c, property);
  if (is_white_space(c)) f |= kWhitespace;
  if (is_cjk(c)) f |= kCjk;
  if (to_lower(c) != std::pair<char32_t, char32_t>(c, 0)) f |= kLowercases;
  // Hangul's jamo compose with what stands before, as do some marks without a combining class.
  if (property.combining_class == 0 && !(f & kMark) && !(c >= 0x1100 && c <= 0x11FF)) {
    if (keeps(c, false, false)) f |= kNfd;
    if (keeps(c, true, false)) f |= kNfkd;
    if (keeps(c, false, true)) f |= kNfc;
    if (keeps(c, true, true)) f |= kNfkc;
  }
  return f;
}

}  // namespace

namespace internal {

std::array<std::atomic<const Block*>, 0x1100> blocks{};

const Block* make_block(uint32_t index) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<const Block>> owners;
  const std::lock_guard lock(mutex);
  if (const Block* block = blocks[index].load(std::memory_order_acquire)) return block;
  auto block = std::make_unique<Block>();
  for (uint32_t i = 0; i < 256; ++i) (*block)[i] = flags_of(index << 8 | i);
  blocks[index].store(block.get(), std::memory_order_release);
  owners.push_back(std::move(block));
  return owners.back().get();
}

}  // namespace internal

char32_t last(std::string_view text) {
  const char* p = text.data() + text.size() - 1;
  while (p > text.data() && is_continuation(*p)) --p;
  return next(p);
}

void append(std::string& text, char32_t c) {
  char bytes[4];
  text.append(bytes, static_cast<size_t>(put(c, bytes) - bytes));
}

bool is_ascii(std::string_view text) {
  uint8_t any = 0;
  for (const char byte : text) any |= static_cast<uint8_t>(byte);
  return any < 0x80;
}

bool is_valid(std::string_view text) {
  if (is_ascii(text)) return true;
  while (!text.empty()) {
    if (static_cast<uint8_t>(text[0]) < 0x80) {
      text.remove_prefix(1);
      continue;
    }
    const Utf8Unit unit = next_utf8(text);
    if (unit.kind != Utf8Unit::Valid) return false;
    text.remove_prefix(unit.length);
  }
  return true;
}

size_t count(std::string_view text) {
  size_t n = 0;
  for (const char byte : text) n += !is_continuation(byte);
  return n;
}

std::string repaired(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = next_utf8(text);
    if (unit.kind == Utf8Unit::Valid)
      out.append(text.substr(0, unit.length));
    else
      out += "\xEF\xBF\xBD";
    text.remove_prefix(unit.length);
  }
  return out;
}

std::pair<char32_t, char32_t> to_lower(char32_t c) {
  if (c < 0x80) return {c >= 'A' && c <= 'Z' ? c + 32 : c, 0};
  if (c == 0x130) return {'i', 0x307};
  return {static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), 0};
}

bool in_class(char32_t c, const char* name) { return holds(class_number(name), c); }

void grapheme_ends(std::string_view text, std::vector<size_t>& ends) {
  ends.clear();
  const char* p = text.data();
  const char* end = p + text.size();
  utf8proc_int32_t state = 0, before = -1;
  while (p < end) {
    const auto at = static_cast<size_t>(p - text.data());
    const auto c = static_cast<utf8proc_int32_t>(next(p));
    if (before >= 0 && utf8proc_grapheme_break_stateful(before, c, &state)) ends.push_back(at);
    before = c;
  }
  if (before >= 0) ends.push_back(text.size());
}

}  // namespace hierarchos::unicode
