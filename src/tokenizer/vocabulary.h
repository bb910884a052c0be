// Tokens and their ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hierarchos::tokenizers {

class Vocabulary {
 public:
  void reserve(size_t tokens, size_t bytes);
  // A token that is there already gets the new id. Call finish() when all are there.
  void add(std::string_view token, int32_t id);
  // Makes token() work. Memory is in proportion to the number of tokens, whatever the ids.
  void finish();

  std::optional<int32_t> find(std::string_view token) const {
    const int32_t id = id_of(token);
    return id < 0 ? std::nullopt : std::optional(id);
  }
  int32_t id_of(std::string_view token) const;              // -1: none
  std::optional<std::string_view> token(int32_t id) const;  // valid while the vocabulary is
  size_t size() const { return entries_.size(); }
  int32_t max_id() const { return max_id_; }  // -1: empty
  bool ids_repeat() const { return ids_repeat_; }
  size_t longest() const { return longest_; }  // bytes
  template <typename F>
  void for_each(F f) const {
    for (const Entry& entry : entries_) f(text_of(entry), entry.id);
  }

 private:
  struct Entry {
    uint64_t begin = 0;
    uint32_t length = 0, hash = 0;
    int32_t id = 0;
  };
  std::string_view text_of(const Entry& entry) const { return {bytes_.data() + entry.begin, entry.length}; }
  void grow(size_t slots);

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // entry + 1, 0: free; a power of two
  std::vector<uint32_t> dense_;  // by id: entry + 1
  std::unordered_map<int32_t, uint32_t> sparse_;
  int32_t max_id_ = -1;
  size_t longest_ = 0;
  bool ids_repeat_ = false;
};

// Many byte strings, found by walking byte by byte.
class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;
  // Values are not negative; of equal keys the last counts. Empty keys are left out.
  explicit ByteTrie(std::vector<std::pair<std::string_view, int32_t>> keys = {});
  static constexpr uint32_t kRoot = 0;
  // The node after one more byte; kRoot: there is none.
  uint32_t child(uint32_t node, uint8_t byte) const {
    if (node == kRoot) return root_[byte];
    const Node& n = nodes_[node];
    const uint8_t* labels = labels_.data() + n.first;
    for (uint32_t i = 0; i < n.count; ++i)
      if (labels[i] == byte) return n.first + i;
    return kRoot;
  }
  int32_t value(uint32_t node) const { return nodes_[node].value; }
  bool empty() const { return nodes_.size() == 1; }
  bool begins(uint8_t byte) const { return root_[byte] != kRoot; }

 private:
  struct Node {
    uint32_t first = 0, count = 0;  // children: nodes first to first + count - 1
    int32_t value = kNone;
  };
  std::vector<Node> nodes_;
  std::vector<uint8_t> labels_;  // by node: the byte that leads to it
  std::vector<uint32_t> root_;   // children of the root by byte
};

}  // namespace hierarchos::tokenizers
