// GGUF files, versions 2 and 3 (ggml's docs/gguf.md): metadata, then tensors in ggml's block formats.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/os/file.h"
#include "tensor/host_tensor.h"

namespace hierarchos::formats {

// A metadata value. Integers of all widths are int64 (uint64 above its range is refused), both floats are double.
struct GgufValue {
  using Array = std::vector<GgufValue>;
  std::variant<int64_t, double, bool, std::string, Array> data;

  bool is_string() const { return std::holds_alternative<std::string>(data); }
  bool is_array() const { return std::holds_alternative<Array>(data); }
};

class GgufFile : public std::enable_shared_from_this<GgufFile> {
 public:
  // Checks everything before it allocates: counts against the bytes that are there, extents, alignment, names used twice.
  // Malformed files throw DataError naming file, field and reason.
  static std::shared_ptr<const GgufFile> open(const std::filesystem::path& path);

  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  const GgufValue* find(const std::string& key) const;  // null when absent
  // Typed look-ups; throw DataError naming the key when it is absent (without fallback) or of another kind.
  int64_t integer(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t fallback) const { return find(key) ? integer(key) : fallback; }
  double number(const std::string& key) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key) const;
  std::string text(const std::string& key, const std::string& fallback) const { return find(key) ? text(key) : fallback; }
  std::vector<std::string> texts(const std::string& key) const;    // an array of strings
  std::vector<int64_t> integers(const std::string& key) const;     // an array of integers

  struct Entry {
    uint32_t type = 0;  // ggml's number
    bool readable = false;
    DType dtype = DType::F32;
    Storage storage = Storage::Plain;
    Shape shape;  // outermost first
    size_t begin = 0, bytes = 0;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  // Refers to the mapped file, which it keeps open.
  HostTensor tensor(const std::string& name) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  class Reader;
  void parse();
  [[noreturn]] void fail(const std::string& what) const;
  std::filesystem::path path_;
  MappedFile file_;
  std::map<std::string, GgufValue> metadata_;
  std::map<std::string, Entry> entries_;
};

}  // namespace hierarchos::formats
