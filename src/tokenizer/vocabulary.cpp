#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hierarchos::tokenizers {
namespace {

uint32_t hash_of(std::string_view text) { return static_cast<uint32_t>(XXH3_64bits(text.data(), text.size())); }

}  // namespace

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  entries_.reserve(tokens);
  bytes_.reserve(bytes);
  grow(std::bit_ceil(std::max<size_t>(16, tokens * 2)));
}

void Vocabulary::grow(size_t slots) {
  slots_.assign(slots, 0);
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    size_t at = entries_[i].hash & (slots - 1);
    while (slots_[at]) at = (at + 1) & (slots - 1);
    slots_[at] = i + 1;
  }
}

void Vocabulary::add(std::string_view token, int32_t id) {
  if (entries_.size() * 2 >= slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  const uint32_t hash = hash_of(token);
  max_id_ = std::max(max_id_, id);
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at]; at = (at + 1) & (slots_.size() - 1)) {
    Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash != hash || text_of(entry) != token) continue;
    entry.id = id;
    return;
  }
  slots_[at] = static_cast<uint32_t>(entries_.size()) + 1;
  entries_.push_back({bytes_.size(), static_cast<uint32_t>(token.size()), hash, id});
  bytes_ += token;
  longest_ = std::max(longest_, token.size());
}

void Vocabulary::finish() {
  dense_.clear();
  sparse_.clear();
  ids_repeat_ = false;
  const bool dense = static_cast<uint64_t>(max_id_ + int64_t{1}) <= 4 * entries_.size() + 1024;
  if (dense) dense_.assign(static_cast<size_t>(max_id_ + 1), 0);
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    uint32_t& place = dense ? dense_[static_cast<size_t>(entries_[i].id)] : sparse_[entries_[i].id];
    ids_repeat_ |= place != 0;
    place = i + 1;
  }
}

int32_t Vocabulary::id_of(std::string_view token) const {
  if (slots_.empty()) return -1;
  const uint32_t hash = hash_of(token);
  for (size_t at = hash & (slots_.size() - 1); slots_[at]; at = (at + 1) & (slots_.size() - 1)) {
    const Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && text_of(entry) == token) return entry.id;
  }
  return -1;
}

std::optional<std::string_view> Vocabulary::token(int32_t id) const {
  uint32_t entry = 0;
  if (id >= 0 && static_cast<size_t>(id) < dense_.size()) {
    entry = dense_[static_cast<size_t>(id)];
  } else if (!sparse_.empty()) {
    const auto found = sparse_.find(id);
    if (found != sparse_.end()) entry = found->second;
  }
  if (!entry) return std::nullopt;
  return text_of(entries_[entry - 1]);
}

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, int32_t>> keys) : root_(256, kRoot) {
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  nodes_.emplace_back();
  labels_.push_back(0);
  // Breadth first, so that a node's children are neighbours. A range of keys shares its first `depth` bytes.
  struct Range {
    size_t begin, end, depth;
    uint32_t node;
  };
  std::vector<Range> ranges = {{0, keys.size(), 0, kRoot}};
  for (size_t next = 0; next < ranges.size(); ++next) {
    auto [begin, end, depth, node] = ranges[next];
    while (begin < end && keys[begin].first.size() == depth) {
      if (node != kRoot) nodes_[node].value = keys[begin].second;
      ++begin;
    }
    nodes_[node].first = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char label = keys[begin].first[depth];
      size_t stop = begin + 1;
      while (stop < end && keys[stop].first[depth] == label) ++stop;
      const auto child = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
      labels_.push_back(static_cast<uint8_t>(label));
      if (node == kRoot) root_[static_cast<uint8_t>(label)] = child;
      ++nodes_[node].count;
      ranges.push_back({begin, stop, depth + 1, child});
      begin = stop;
    }
  }
}

}  // namespace hierarchos::tokenizers
