// GGUF files, versions 2 and 3 (ggml's docs/gguf.md): metadata, then tensors in ggml's block formats.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tensor/host_tensor.h"

namespace hierarchos::formats {

// An array of metadata: checked when the file is opened, decoded when it is asked for, so that it takes no memory of
// its own.
struct GgufArray {
  uint32_t kind = 0;  // GGUF's number of the elements' type
  uint64_t count = 0;
  std::span<const std::byte> bytes;
};

// A metadata value. Integers of all widths are int64_t, those above its range uint64_t; both floats are double.
struct GgufValue {
  std::variant<int64_t, uint64_t, double, bool, std::string, GgufArray> data;
};

class GgufFile : public std::enable_shared_from_this<GgufFile> {
 public:
  // Checks everything before it allocates: counts against the bytes that are there, extents, alignment, overlaps, names
  // used twice. Malformed files throw DataError naming file, field and reason; other versions UnsupportedError.
  static std::shared_ptr<const GgufFile> open(const std::filesystem::path& path);
  // The same for bytes in memory, which `owner` keeps alive; `where` names them in errors.
  static std::shared_ptr<const GgufFile> parse(std::string where, std::span<const std::byte> bytes,
                                               std::shared_ptr<const void> owner);

  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  bool has(const std::string& key) const { return metadata_.count(key) != 0; }
  // Typed look-ups; throw DataError naming the key when it is absent (without fallback) or of another kind.
  int64_t integer(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  double number(const std::string& key) const;  // an integer will do
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key) const;
  std::string text(const std::string& key, const std::string& fallback) const {
    return has(key) ? text(key) : fallback;
  }
  std::vector<std::string> texts(const std::string& key) const;  // an array of strings
  std::vector<int64_t> integers(const std::string& key) const;   // an array of integers
  std::vector<double> numbers(const std::string& key) const;     // an array of numbers
  // The elements of an array of any kind; those that are arrays can be given here again.
  std::vector<GgufValue> elements(const GgufArray& array) const;

  struct Entry {
    uint32_t type = 0;      // ggml's number
    bool readable = false;  // is it one of ours?
    DType dtype = DType::F32;
    Storage storage = Storage::Plain;
    Shape shape;  // outermost first
    size_t begin = 0, bytes = 0;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  // Refers to the mapped file, which it keeps open. Throws UserError for a name that is not there, UnsupportedError for
  // a type that we do not read.
  HostTensor tensor(const std::string& name) const;
  const std::string& where() const { return where_; }

 private:
  class Reader;
  void read();
  void read_tensor_infos(Reader& in, uint64_t count, uint64_t alignment);
  const GgufValue& value(const std::string& key) const;
  template <typename T, typename Convert>
  std::vector<T> array(const std::string& key, const char* kind, Convert convert) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string where_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, GgufValue> metadata_;
  std::map<std::string, Entry> entries_;
};

}  // namespace hierarchos::formats
