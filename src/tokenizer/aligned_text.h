// A text that was changed step by step, and where in the original each byte comes from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/regex.h"
#include "tokenizer/unicode.h"

namespace hierarchos {

// A range of bytes of the original.
struct Origin {
  uint32_t begin = 0, end = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

// Memory for changed texts: given back all at once, so that encoding allocates next to nothing.
class TextArena {
 public:
  char* bytes(size_t count) { return reinterpret_cast<char*>(allocate(count)); }
  Origin* origins(size_t count) { return reinterpret_cast<Origin*>(allocate(count * sizeof(Origin))); }
  void clear();

 private:
  std::byte* allocate(size_t count);  // aligned to 8
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    size_t size = 0;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0, used_ = 0;
};

// A view: copies and slices are cheap, changes make new text in an arena. The rules by which positions move are those
// of the reference (tokenizers' NormalizedString), which its offsets show.
class AlignedText {
 public:
  AlignedText() = default;
  // The original itself, valid UTF-8 of less than 4 GiB.
  explicit AlignedText(std::string_view original) : text_(original), original_length_(original.size()) {}

  std::string_view text() const { return text_; }
  bool empty() const { return text_.empty(); }
  size_t original_begin() const { return begin_; }  // in the original, bytes
  size_t original_end() const { return begin_ + original_length_; }
  bool is_original() const { return origins_ == nullptr; }

  AlignedText slice(size_t begin, size_t end) const;
  // Where bytes [begin, end) come from, and false where that has no answer (a range outside of the text).
  bool origin_of(size_t begin, size_t end, Origin& out) const;

  // The text as these characters, one after another; `skipped` characters before the first are removed.
  void transform(const std::vector<unicode::Change>& changes, size_t skipped, TextArena& arena);
  // Keeps characters: those for which keep(c) holds, each as map(c) says.
  template <typename Keep, typename Map>
  void filter_map(Keep keep, Map map, TextArena& arena);
  void prepend(std::string_view prefix, TextArena& arena);
  // Puts content for each match.
  void replace(const std::vector<Match>& matches, std::string_view content, TextArena& arena);

 private:
  Origin origin_at(size_t i) const;
  // The part that a change of the whole covers: characters inserted before the first original one stay out of it.
  // False: the text cannot change.
  bool changeable(size_t& begin, size_t& end) const;
  void take(char* bytes, Origin* origins, size_t length) {
    text_ = {bytes, length};
    origins_ = origins;
  }

  std::string_view text_;
  const Origin* origins_ = nullptr;  // one a byte; null: the bytes are the original's
  size_t begin_ = 0;                 // of the part of the original that this is
  size_t original_length_ = 0;
};

inline Origin AlignedText::origin_at(size_t i) const {
  if (origins_) return origins_[i];
  size_t first = i;
  while (first > 0 && unicode::is_continuation(text_[first])) --first;
  const auto at = static_cast<uint32_t>(begin_ + first);
  return {at, at + static_cast<uint32_t>(unicode::length_of(text_[first]))};
}

template <typename Keep, typename Map>
void AlignedText::filter_map(Keep keep, Map map, TextArena& arena) {
  size_t begin, end;
  if (!changeable(begin, end)) return;
  if (begin != 0 || end != text_.size()) {  // rare: let the rules for it speak
    std::vector<unicode::Change> changes;
    size_t skipped = 0, removed = 0;
    const char* p = text_.data();
    const char* stop = p + text_.size();
    while (p < stop) {
      const char32_t c = unicode::next(p);
      if (!keep(c)) {
        ++removed;
        continue;
      }
      if (changes.empty())
        skipped = removed;
      else
        changes.back().second = -static_cast<int64_t>(removed);
      changes.emplace_back(map(c), 0);
      removed = 0;
    }
    if (!changes.empty()) changes.back().second = -static_cast<int64_t>(removed);
    return transform(changes, skipped, arena);
  }
  // Nothing may have to change; up to there nothing is copied.
  const char* p = text_.data();
  const char* stop = p + text_.size();
  const char* same = p;
  while (p < stop) {
    const char32_t c = unicode::next(p);
    if (!keep(c) || map(c) != c) break;
    same = p;
  }
  if (same == stop) return;
  const auto prefix = static_cast<size_t>(same - text_.data());
  // A mapped character may be longer by at most 3 bytes a byte.
  char* bytes = arena.bytes(prefix + 4 * (text_.size() - prefix));
  Origin* origins = arena.origins(prefix + 4 * (text_.size() - prefix));
  std::copy_n(text_.data(), prefix, bytes);
  size_t length = prefix;
  for (size_t i = 0; i < prefix; ++i) origins[i] = origin_at(i);
  for (p = same; p < stop;) {
    const auto at = static_cast<size_t>(p - text_.data());
    const char32_t c = unicode::next(p);
    if (!keep(c)) continue;
    const Origin origin =
        origins_ ? origins_[at]
                 : Origin{static_cast<uint32_t>(begin_ + at), static_cast<uint32_t>(begin_ + (p - text_.data()))};
    const auto next = static_cast<size_t>(unicode::put(map(c), bytes + length) - bytes);
    for (; length < next; ++length) origins[length] = origin;
  }
  take(bytes, origins, length);
}

}  // namespace hierarchos
