#include "tokenizer/aligned_text.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hierarchos {

std::byte* TextArena::allocate(size_t count) {
  constexpr size_t kChunk = size_t{1} << 16;
  count = (count + 7) & ~size_t{7};
  while (chunk_ < chunks_.size() && used_ + count > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const size_t size = std::max(kChunk, count);
    chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    used_ = 0;
  }
  std::byte* at = chunks_[chunk_].memory.get() + used_;
  used_ += count;
  return at;
}

void TextArena::clear() {
  constexpr size_t kKept = size_t{1} << 22;
  size_t total = 0;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    total += chunks_[i].size;
    if (total > kKept) {
      chunks_.resize(i);
      break;
    }
  }
  chunk_ = used_ = 0;
}

AlignedText AlignedText::slice(size_t begin, size_t end) const {
  AlignedText out;
  Origin origin;
  if (!origin_of(begin, end, origin)) throw DataError("A part of a text lies outside of it");
  out.text_ = text_.substr(begin, end - begin);
  out.origins_ = origins_ ? origins_ + begin : nullptr;
  out.begin_ = origin.begin;
  out.original_length_ = origin.end > origin.begin ? origin.end - origin.begin : 0;
  return out;
}

bool AlignedText::origin_of(size_t begin, size_t end, Origin& out) const {
  if (begin == end) {
    out = {static_cast<uint32_t>(begin_ + begin), static_cast<uint32_t>(begin_ + end)};
    return true;
  }
  if (begin > end || end > text_.size()) return false;
  out = {origin_at(begin).begin, origin_at(end - 1).end};
  return true;
}

bool AlignedText::changeable(size_t& begin, size_t& end) const {
  begin = 0;
  end = text_.size();
  if (!origins_) return true;
  if (original_length_ == 0) return end = 0, true;
  if (text_.empty()) return false;
  while (begin < end && origins_[begin].begin == origins_[begin].end) ++begin;
  const uint32_t stop = static_cast<uint32_t>(begin_ + original_length_);
  size_t last = 0;
  while (last < end && origins_[last].end <= stop) ++last;
  if (begin >= last) begin = last;
  end = last;
  return true;
}

void AlignedText::transform(const std::vector<unicode::Change>& changes, size_t skipped, TextArena& arena) {
  size_t begin, end;
  if (!changeable(begin, end)) return;
  size_t capacity = text_.size() - (end - begin);
  for (const auto& change : changes) capacity += unicode::width(change.first);
  char* bytes = arena.bytes(capacity);
  Origin* origins = arena.origins(capacity);
  size_t length = 0;
  const auto keep = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) origins[length] = origin_at(i), bytes[length++] = text_[i];
  };
  keep(0, begin);
  size_t at = begin;  // what is replaced next
  const auto advance = [&](size_t characters) {
    for (; characters > 0 && at < end; --characters) at += unicode::length_of(text_[at]);
  };
  advance(skipped);
  const Origin before_all{static_cast<uint32_t>(begin_), static_cast<uint32_t>(begin_)};
  for (const auto& [c, change] : changes) {
    Origin origin = before_all;
    if (change > 0) {
      if (at > 0) origin = origin_at(at - 1);
    } else if (at < text_.size()) {
      origin = origin_at(at);
    } else if (!text_.empty()) {
      origin = origin_at(text_.size() - 1);
    }
    if (change <= 0) advance(1 + static_cast<size_t>(-change));
    const auto next = static_cast<size_t>(unicode::put(c, bytes + length) - bytes);
    for (; length < next; ++length) origins[length] = origin;
  }
  keep(end, text_.size());
  take(bytes, origins, length);
}

void AlignedText::prepend(std::string_view prefix, TextArena& arena) {
  if (text_.empty()) return;
  const size_t first = unicode::length_of(text_[0]), length = prefix.size() + text_.size();
  char* bytes = arena.bytes(length);
  Origin* origins = arena.origins(length);
  std::copy(prefix.begin(), prefix.end(), bytes);
  std::copy(text_.begin(), text_.end(), bytes + prefix.size());
  const Origin before_all{static_cast<uint32_t>(begin_), static_cast<uint32_t>(begin_)};
  std::fill_n(origins, prefix.size() + first, prefix.empty() ? before_all : origin_at(0));
  Origin* rest = origins + prefix.size();
  if (origins_) {
    std::copy(origins_ + first, origins_ + text_.size(), rest + first);
  } else {
    for (size_t i = first; i < text_.size();) {
      const size_t n = unicode::length_of(text_[i]);
      const Origin origin{static_cast<uint32_t>(begin_ + i), static_cast<uint32_t>(begin_ + i + n)};
      for (size_t k = 0; k < n; ++k) rest[i + k] = origin;
      i += n;
    }
  }
  take(bytes, origins, length);
}

void AlignedText::replace(const std::vector<Match>& matches, std::string_view content, TextArena& arena) {
  size_t length = 0;
  bool any = false;
  for (const Match& match : matches) {
    any |= match.matched;
    length += match.matched ? content.size() : match.end - match.begin;
  }
  if (!any) return;
  char* bytes = arena.bytes(length);
  Origin* origins = arena.origins(length);
  size_t out = 0;
  for (const Match& match : matches) {
    if (match.matched) {
      const Origin origin = match.end > 0 ? origin_at(match.end - 1)
                                          : Origin{static_cast<uint32_t>(begin_), static_cast<uint32_t>(begin_)};
      std::copy(content.begin(), content.end(), bytes + out);
      std::fill_n(origins + out, content.size(), origin);
      out += content.size();
      continue;
    }
    const size_t n = match.end - match.begin;
    std::memcpy(bytes + out, text_.data() + match.begin, n);
    if (origins_) {
      std::memcpy(origins + out, origins_ + match.begin, n * sizeof(Origin));
    } else {
      for (size_t i = match.begin; i < match.end;) {
        const size_t width = unicode::length_of(text_[i]);
        const Origin origin{static_cast<uint32_t>(begin_ + i), static_cast<uint32_t>(begin_ + i + width)};
        for (size_t k = 0; k < width; ++k) origins[out + i - match.begin + k] = origin;
        i += width;
      }
    }
    out += n;
  }
  take(bytes, origins, length);
}

}  // namespace hierarchos
