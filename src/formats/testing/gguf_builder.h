// Writes GGUF files piece by piece, right or wrong, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/gguf.h"

namespace hierarchos::formats::testing {

class GgufBuilder {
 public:
  enum Kind : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

  template <typename T>
  requires std::is_arithmetic_v<T>
  static std::string raw(T v) { return {reinterpret_cast<const char*>(&v), sizeof(T)}; }
  static std::string raw(const std::string& s) { return raw(uint64_t{s.size()}) + s; }
  template <typename T>
  static std::string array(Kind kind, const std::vector<T>& values) {
    std::string out = raw(static_cast<uint32_t>(kind)) + raw(uint64_t{values.size()});
    for (const T& v : values) out += raw(v);
    return out;
  }

  // `bytes` are the value as it lies in the file: raw(…) or array(…).
  GgufBuilder& pair(const std::string& key, Kind kind, const std::string& bytes) {
    pairs_ += raw(key) + raw(static_cast<uint32_t>(kind)) + bytes;
    ++pair_count;
    return *this;
  }
  GgufBuilder& pair(const std::string& key, const std::string& text) { return pair(key, String, raw(text)); }
  GgufBuilder& pair(const std::string& key, uint32_t v) { return pair(key, U32, raw(v)); }
  GgufBuilder& pair(const std::string& key, float v) { return pair(key, F32, raw(v)); }

  // `dims` are in the file's order, innermost first. The data is padded to the alignment.
  GgufBuilder& tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type,
                      const std::string& data) {
    return tensor_at(name, dims, type, data_.size(), data);
  }
  GgufBuilder& tensor_at(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset,
                         const std::string& data) {
    infos_ += raw(name) + raw(static_cast<uint32_t>(dims.size()));
    for (uint64_t d : dims) infos_ += raw(d);
    infos_ += raw(type) + raw(offset);
    data_ += data;
    data_.append((alignment - data_.size() % alignment) % alignment, '\0');
    ++tensor_count;
    return *this;
  }

  std::string bytes() const {
    std::string out = raw(magic) + raw(version) + raw(tensor_count) + raw(pair_count) + pairs_ + infos_;
    out.append((alignment - out.size() % alignment) % alignment, '\0');
    return out + data_;
  }
  std::shared_ptr<const GgufFile> parse() const { return parse(bytes()); }
  static std::shared_ptr<const GgufFile> parse(const std::string& bytes) {
    auto owner = std::make_shared<std::vector<std::byte>>(bytes.size());
    std::transform(bytes.begin(), bytes.end(), owner->begin(), [](char c) { return static_cast<std::byte>(c); });
    return GgufFile::parse("test.gguf", *owner, owner);
  }

  // Written as they are, so that a test can make them wrong.
  uint32_t magic = 0x46554747, version = 3;
  uint64_t tensor_count = 0, pair_count = 0;
  size_t alignment = 32;

 private:
  std::string pairs_, infos_, data_;
};

}  // namespace hierarchos::formats::testing
