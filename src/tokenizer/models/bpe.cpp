#include "tokenizer/models/bpe.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/rng.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/unicode.h"

namespace hierarchos::tokenizers {
namespace {

uint64_t mix(uint64_t x) {
  x *= 0x9E3779B97F4A7C15u;
  return x ^ x >> 32;
}
uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A queue of (rank, place), the smallest first.
void push(std::vector<uint64_t>& heap, uint32_t rank, size_t place) {
  heap.push_back(static_cast<uint64_t>(rank) << 32 | place);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

}  // namespace

Bpe::Bpe(BpeOptions options) : options_(std::move(options)) {
  vocabulary_ = std::move(options_.vocabulary);
  if (!(options_.dropout >= 0 && options_.dropout <= 1))
    throw DataError("{}: dropout is {}, not between 0 and 1", options_.where, options_.dropout);
  if (!options_.unknown.empty()) unknown_ = vocabulary_.find(options_.unknown);
  for (int b = 0; b < 256; ++b) byte_tokens_[static_cast<size_t>(b)] = vocabulary_.id_of(fmt::format("<0x{:02X}>", b));
  vocabulary_.for_each([&](std::string_view token, int32_t id) {
    if (token.empty() || unicode::length_of(token[0]) != token.size()) return;
    const char* p = token.data();
    const char32_t c = unicode::next(p);
    auto& block = characters_[c >> 8];
    if (!block) {
      block = std::make_unique<std::array<int32_t, 256>>();
      block->fill(-1);
    }
    (*block)[c & 0xFF] = id;
  });
  plain_ = options_.prefix.empty() && !vocabulary_.ids_repeat();
  add_merges();
  // Without an unknown token, unknown characters vanish: their neighbours meet, and count as standing side by side.
  if (plain_ && !joins_stand_ins_ && !options_.unknown.empty() && options_.suffix.empty() && options_.dropout == 0)
    add_neighbours();
}

void Bpe::add_merges() {
  const size_t cut = options_.prefix.size();
  merges_.assign(std::bit_ceil(std::max<size_t>(16, options_.merges.size() * 2)), {});
  merged_.reserve(options_.merges.size());
  std::string joined;
  for (const auto& [left, right] : options_.merges) {
    const auto id_of = [&](std::string_view token) {
      const int32_t id = vocabulary_.id_of(token);
      if (id < 0)
        throw DataError("{}: merge {} needs the token \"{}\", which is not in the vocabulary", options_.where,
                        merged_.size(), token);
      return id;
    };
    const int32_t a = id_of(left), b = id_of(right);
    if (right.size() < cut || (cut < right.size() && unicode::is_continuation(right[cut])))
      throw DataError("{}: merge {}: \"{}\" is shorter than the prefix", options_.where, merged_.size(), right);
    joined.assign(left).append(right.substr(cut));
    if (left.empty() || right.empty()) plain_ = false;
    // Such a token may stand for a text that is not its own.
    const auto stands_in = [&](std::string_view token) {
      return (!options_.unknown.empty() && token == options_.unknown) ||
             (options_.byte_fallback && token.size() == 6 && token.starts_with("<0x"));
    };
    joins_stand_ins_ |= stands_in(left) || stands_in(right);
    const Merge merge{pair_of(a, b), static_cast<uint32_t>(merged_.size()), id_of(joined)};
    merged_.push_back(merge.id);
    size_t at = mix(merge.pair) & (merges_.size() - 1);
    while (merges_[at].pair != kNoPair && merges_[at].pair != merge.pair) at = (at + 1) & (merges_.size() - 1);
    merges_[at] = merge;
  }
  options_.merges.clear();
  options_.merges.shrink_to_fit();
}

void Bpe::add_neighbours() {
  neighbours_.assign(std::bit_ceil(std::max<size_t>(64, merged_.size() / 4)), 0);
  std::string_view token;
  for (const int32_t id : merged_) {
    token = *vocabulary_.token(id);
    char32_t before = 0;
    for (const char *p = token.data(), *begin = p, *end = p + token.size(); p < end;) {
      const bool first = p == begin;
      const char32_t c = unicode::next(p);
      if (!first) {
        const uint64_t hash = mix(static_cast<uint64_t>(before) << 21 | c);
        neighbours_[hash >> 6 & (neighbours_.size() - 1)] |= uint64_t{1} << (hash & 63);
      }
      before = c;
    }
  }
}

bool Bpe::neighbours(char32_t left, char32_t right) const {
  const uint64_t hash = mix(static_cast<uint64_t>(left) << 21 | right);
  return neighbours_[hash >> 6 & (neighbours_.size() - 1)] >> (hash & 63) & 1;
}

bool Bpe::take_bytes() {
  if (!options_.prefix.empty() || !options_.suffix.empty() || options_.byte_fallback) return false;
  for (size_t b = 0; b < 256; ++b) {
    letters_[b] = character_id(ByteAlphabet::letter(static_cast<uint8_t>(b)));
    if (letters_[b] < 0) return false;
  }
  bytes_ = true;
  first_ranks_.resize(size_t{256} * 256);
  for (size_t a = 0; a < 256; ++a)
    for (size_t b = 0; b < 256; ++b) first_ranks_[a << 8 | b] = rank_of(letters_[a], letters_[b]);
  if (options_.ignore_merges) {
    std::string bytes;
    words_.reserve(vocabulary_.size(), 0);
    vocabulary_.for_each([&](std::string_view token, int32_t id) {
      if (ByteAlphabet::read(token, bytes)) words_.add(bytes, id);
    });
  }
  return true;
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  for (size_t at = mix(pair) & (merges_.size() - 1);; at = (at + 1) & (merges_.size() - 1)) {
    if (merges_[at].pair == pair) return &merges_[at];
    if (merges_[at].pair == kNoPair) return nullptr;
  }
}

void Bpe::tokenize(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const {
  if (options_.ignore_merges && options_.dropout == 0) {
    const int32_t id = (bytes_ ? words_ : vocabulary_).id_of(piece);
    if (id >= 0) return out.push_back({id, 0, static_cast<uint32_t>(piece.size())});
  }
  if (!bytes_ && !neighbours_.empty()) return tokenize_characters(piece, out, scratch);
  tokenize_word(piece, 0, out, scratch);
}

// Cuts the piece where no merge can join: before a character that is a token, so that no unknown one waits to be fused.
void Bpe::tokenize_characters(std::string_view piece, std::vector<Token>& out, ModelScratch& scratch) const {
  const char *p = piece.data(), *end = p + piece.size(), *word = p;
  char32_t before = unicode::next(p);
  const auto emit = [&](const char* stop) {
    tokenize_word({word, static_cast<size_t>(stop - word)}, static_cast<uint32_t>(word - piece.data()), out, scratch);
  };
  while (p < end) {
    const char* at = p;
    const char32_t c = unicode::next(p);
    if (!neighbours(before, c) && character_id(c) >= 0) {
      emit(at);
      word = at;
    }
    before = c;
  }
  emit(end);
}

void Bpe::tokenize_word(std::string_view word, uint32_t begin, std::vector<Token>& out, ModelScratch& scratch) const {
  const bool cached = options_.dropout == 0;
  if (cached && scratch.cache.find(word, begin, out)) return;
  scratch.ids.clear();
  scratch.lengths.clear();
  if (bytes_)
    spell_bytes(word, scratch);
  else
    spell_characters(word, scratch);
  constexpr size_t kFew = 24;
  if (scratch.ids.size() > 1 && options_.dropout < 1) {
    if (plain_ && options_.dropout == 0 && scratch.ids.size() <= kFew)
      merge_few(scratch);
    else
      merge_many(scratch, options_.dropout > 0 ? XXH3_64bits(word.data(), word.size()) : 0);
  }
  const size_t first = out.size();
  uint32_t at = begin;
  for (size_t i = 0; i < scratch.ids.size(); ++i) {
    out.push_back({scratch.ids[i], at, at + scratch.lengths[i]});
    at += scratch.lengths[i];
  }
  if (cached) scratch.cache.keep(word, out, first);
}

void Bpe::spell_bytes(std::string_view word, ModelScratch& scratch) const {
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(word[i])); };
  scratch.ids.resize(word.size());
  scratch.ranks.resize(word.size());
  scratch.lengths.assign(word.size(), 1);
  for (size_t i = 0; i < word.size(); ++i) scratch.ids[i] = letters_[byte(i)];
  for (size_t i = 0; i + 1 < word.size(); ++i) scratch.ranks[i] = first_ranks_[byte(i) << 8 | byte(i + 1)];
}

void Bpe::spell_characters(std::string_view word, ModelScratch& scratch) const {
  const auto add = [&](int32_t id, uint32_t length) {
    scratch.ids.push_back(id);
    scratch.lengths.push_back(length);
  };
  uint32_t unknown = 0;  // bytes of unknown characters that wait
  const bool bare = options_.prefix.empty() && options_.suffix.empty();
  const char* end = word.data() + word.size();
  for (const char* p = word.data(); p < end;) {
    const char* at = p;
    const char32_t c = unicode::next(p);
    const auto length = static_cast<uint32_t>(p - at);
    std::string_view text(at, length);
    int32_t id;
    if (bare) {
      id = character_id(c);
    } else {
      scratch.text.clear();
      if (at != word.data()) scratch.text += options_.prefix;
      scratch.text += text;
      if (p == end) scratch.text += options_.suffix;
      text = scratch.text;
      id = vocabulary_.id_of(text);
    }
    if (id >= 0) {
      if (unknown) add(*unknown_, unknown);
      unknown = 0;
      add(id, length);
      continue;
    }
    if (options_.byte_fallback &&
        std::all_of(text.begin(), text.end(), [&](char b) { return byte_tokens_[static_cast<uint8_t>(b)] >= 0; })) {
      for (const char b : text) add(byte_tokens_[static_cast<uint8_t>(b)], 1);
      continue;
    }
    if (options_.unknown.empty()) continue;
    if (!unknown_)
      throw UserError(
          "{}: the text has the character U+{:04X}, which no token stands for, and the vocabulary lacks \"{}\"",
          options_.where, static_cast<uint32_t>(c), options_.unknown);
    if (unknown && !options_.fuse_unknown) {
      add(*unknown_, unknown);
      unknown = 0;
    }
    unknown += length;
  }
  if (unknown) add(*unknown_, unknown);
  const auto& ids = scratch.ids;
  scratch.ranks.resize(ids.size());
  for (size_t i = 0; i + 1 < ids.size(); ++i) scratch.ranks[i] = rank_of(ids[i], ids[i + 1]);
}

// Short words: the pair of the lowest rank is looked for again after each merge.
void Bpe::merge_few(ModelScratch& scratch) const {
  auto& ids = scratch.ids;
  auto& lengths = scratch.lengths;
  auto& ranks = scratch.ranks;
  size_t n = ids.size();
  ranks[n - 1] = kNoRank;
  while (n > 1) {
    size_t best = 0;
    uint32_t rank = ranks[0];
    for (size_t i = 1; i + 1 < n; ++i)
      if (ranks[i] < rank) rank = ranks[i], best = i;
    if (rank == kNoRank) break;
    ids[best] = merged_[rank];
    lengths[best] += lengths[best + 1];
    --n;
    for (size_t i = best + 1; i < n; ++i) ids[i] = ids[i + 1], lengths[i] = lengths[i + 1], ranks[i] = ranks[i + 1];
    ranks[best] = best + 1 < n ? rank_of(ids[best], ids[best + 1]) : kNoRank;
    if (best > 0) ranks[best - 1] = rank_of(ids[best - 1], ids[best]);
  }
  ids.resize(n);
  lengths.resize(n);
}

// Long words: a queue. An entry is stale if the pair at its place would no longer make the same token.
void Bpe::merge_many(ModelScratch& scratch, uint64_t seed) const {
  auto& ids = scratch.ids;
  auto& lengths = scratch.lengths;
  auto& heap = scratch.heap;
  auto& next = scratch.next;
  auto& previous = scratch.previous;
  const size_t n = ids.size();
  heap.clear();
  scratch.skipped.clear();
  next.resize(n);
  previous.resize(n);
  for (size_t i = 0; i < n; ++i) {
    next[i] = i + 1 < n ? static_cast<int32_t>(i + 1) : -1;
    previous[i] = static_cast<int32_t>(i) - 1;
  }
  for (size_t i = 0; i + 1 < n; ++i)
    if (scratch.ranks[i] != kNoRank) heap.push_back(static_cast<uint64_t>(scratch.ranks[i]) << 32 | i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  uint64_t draws = 0;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const uint64_t top = heap.back();
    heap.pop_back();
    if (options_.dropout > 0) {
      const double draw = static_cast<double>(splitmix64_at(seed, ++draws) >> 11) * 0x1p-53;
      if (draw < options_.dropout) {
        scratch.skipped.push_back(top);
        continue;
      }
      for (const uint64_t entry : scratch.skipped) push(heap, static_cast<uint32_t>(entry >> 32), entry & 0xFFFFFFFF);
      scratch.skipped.clear();
    }
    const auto at = static_cast<size_t>(top & 0xFFFFFFFF);
    const int32_t made = merged_[top >> 32];
    if (lengths[at] == 0 || next[at] < 0) continue;
    const auto right = static_cast<size_t>(next[at]);
    const Merge* merge = find_merge(ids[at], ids[right]);
    if (!merge || merge->id != made) continue;
    ids[at] = made;
    lengths[at] += lengths[right];
    lengths[right] = 0;
    next[at] = next[right];
    if (next[at] >= 0) previous[static_cast<size_t>(next[at])] = static_cast<int32_t>(at);
    if (previous[at] >= 0) {
      const auto left = static_cast<size_t>(previous[at]);
      if (const uint32_t rank = rank_of(ids[left], made); rank != kNoRank) push(heap, rank, left);
    }
    if (next[at] >= 0)
      if (const uint32_t rank = rank_of(made, ids[static_cast<size_t>(next[at])]); rank != kNoRank)
        push(heap, rank, at);
  }
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    if (lengths[i] == 0) continue;
    ids[kept] = ids[i];
    lengths[kept++] = lengths[i];
  }
  ids.resize(kept);
  lengths.resize(kept);
}

}  // namespace hierarchos::tokenizers
