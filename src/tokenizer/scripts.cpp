// Scripts of characters, by Oniguruma's tables.
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "tokenizer/unicode.h"

namespace hierarchos::unicode {
namespace {

// SentencePiece's list. A name that an older Oniguruma does not know holds no character.
constexpr const char* kScripts[] = {"Adlam",
                                    "Ahom",
                                    "Anatolian_Hieroglyphs",
                                    "Arabic",
                                    "Armenian",
                                    "Avestan",
                                    "Balinese",
                                    "Bamum",
                                    "Bassa_Vah",
                                    "Batak",
                                    "Bengali",
                                    "Bhaiksuki",
                                    "Bopomofo",
                                    "Brahmi",
                                    "Braille",
                                    "Buginese",
                                    "Buhid",
                                    "Canadian_Aboriginal",
                                    "Carian",
                                    "Caucasian_Albanian",
                                    "Chakma",
                                    "Cham",
                                    "Cherokee",
                                    "Common",
                                    "Coptic",
                                    "Cuneiform",
                                    "Cypriot",
                                    "Cyrillic",
                                    "Deseret",
                                    "Devanagari",
                                    "Duployan",
                                    "Egyptian_Hieroglyphs",
                                    "Elbasan",
                                    "Ethiopic",
                                    "Georgian",
                                    "Glagolitic",
                                    "Gothic",
                                    "Grantha",
                                    "Greek",
                                    "Gujarati",
                                    "Gurmukhi",
                                    "Han",
                                    "Hangul",
                                    "Hanunoo",
                                    "Hatran",
                                    "Hebrew",
                                    "Imperial_Aramaic",
                                    "Inherited",
                                    "Inscriptional_Pahlavi",
                                    "Inscriptional_Parthian",
                                    "Javanese",
                                    "Kaithi",
                                    "Kannada",
                                    "Kayah_Li",
                                    "Kharoshthi",
                                    "Khmer",
                                    "Khojki",
                                    "Khudawadi",
                                    "Lao",
                                    "Latin",
                                    "Lepcha",
                                    "Limbu",
                                    "Linear_A",
                                    "Linear_B",
                                    "Lisu",
                                    "Lycian",
                                    "Lydian",
                                    "Mahajani",
                                    "Malayalam",
                                    "Mandaic",
                                    "Manichaean",
                                    "Marchen",
                                    "Meetei_Mayek",
                                    "Mende_Kikakui",
                                    "Meroitic_Cursive",
                                    "Meroitic_Hieroglyphs",
                                    "Miao",
                                    "Modi",
                                    "Mongolian",
                                    "Mro",
                                    "Multani",
                                    "Myanmar",
                                    "Nabataean",
                                    "New_Tai_Lue",
                                    "Newa",
                                    "Nko",
                                    "Ogham",
                                    "Ol_Chiki",
                                    "Old_Hungarian",
                                    "Old_Italic",
                                    "Old_North_Arabian",
                                    "Old_Permic",
                                    "Old_Persian",
                                    "Old_South_Arabian",
                                    "Old_Turkic",
                                    "Oriya",
                                    "Osage",
                                    "Osmanya",
                                    "Pahawh_Hmong",
                                    "Palmyrene",
                                    "Pau_Cin_Hau",
                                    "Phags_Pa",
                                    "Phoenician",
                                    "Psalter_Pahlavi",
                                    "Rejang",
                                    "Runic",
                                    "Samaritan",
                                    "Saurashtra",
                                    "Sharada",
                                    "Shavian",
                                    "Siddham",
                                    "Sign_Writing",
                                    "Sinhala",
                                    "Sora_Sompeng",
                                    "Sundanese",
                                    "Syloti_Nagri",
                                    "Syriac",
                                    "Tagalog",
                                    "Tagbanwa",
                                    "Tai_Le",
                                    "Tai_Tham",
                                    "Tai_Viet",
                                    "Takri",
                                    "Tamil",
                                    "Tangut",
                                    "Telugu",
                                    "Thaana",
                                    "Thai",
                                    "Tibetan",
                                    "Tifinagh",
                                    "Tirhuta",
                                    "Ugaritic",
                                    "Vai",
                                    "Warang_Citi",
                                    "Yi"};

uint8_t script_of(char32_t c) {
  for (const char* name : {"Hiragana", "Katakana"})
    if (in_class(c, name)) return script_of(0x4E00);
  uint8_t number = 1;
  for (const char* name : kScripts) {
    if (in_class(c, name)) return number;
    ++number;
  }
  return 0;
}

}  // namespace

int script(char32_t c) {
  using Block = std::array<uint8_t, 256>;
  static std::array<std::atomic<const Block*>, 0x1100> blocks{};
  static std::mutex mutex;
  static std::vector<std::unique_ptr<const Block>> owners;
  constexpr char32_t kProlongedSoundMark = 0x30FC;
  if (c == ' ' || c > 0x10FFFF) return 0;
  if (c == kProlongedSoundMark) c = 0x4E00;
  const char32_t index = c >> 8;
  const Block* block = blocks[index].load(std::memory_order_acquire);
  if (!block) {
    const std::lock_guard lock(mutex);
    block = blocks[index].load(std::memory_order_acquire);
    if (!block) {
      auto made = std::make_unique<Block>();
      for (char32_t i = 0; i < 256; ++i) (*made)[i] = script_of(index << 8 | i);
      block = made.get();
      blocks[index].store(block, std::memory_order_release);
      owners.push_back(std::move(made));
    }
  }
  return (*block)[c & 0xFF];
}

}  // namespace hierarchos::unicode
