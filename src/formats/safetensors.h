// Hugging Face's safetensors: a JSON header of names, types and offsets, then the bytes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/host_tensor.h"

namespace hierarchos::formats {

// A file whose header has been checked whole: sizes within the file, extents that fit their types, no overlaps, no
// holes, no name twice. Malformed files throw DataError naming file, tensor and reason.
class SafetensorsFile : public std::enable_shared_from_this<SafetensorsFile> {
 public:
  static std::shared_ptr<const SafetensorsFile> open(const std::filesystem::path& path);
  // The same for bytes in memory, which `owner` keeps alive; `where` names them in errors.
  static std::shared_ptr<const SafetensorsFile> parse(std::string where, std::span<const std::byte> bytes,
                                                      std::shared_ptr<const void> owner);

  struct Entry {
    std::string dtype;           // as the file spells it: "F32", "F8_E4M3" …
    std::optional<DType> known;  // absent for types that we do not read
    std::vector<int64_t> shape;
    size_t begin = 0, end = 0;  // bytes after the header
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  // Refers to the mapped file, which it keeps open (a copy, where the file has the elements unaligned). Throws
  // UserError for a name that is not there, UnsupportedError for a type that we do not read.
  HostTensor tensor(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& where() const { return where_; }

 private:
  void read();
  void read_entry(const std::string& name, const nlohmann::json& value, size_t size);
  void check_layout(size_t size) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string where_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  size_t data_ = 0;  // where the tensors' bytes begin
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Writes a file of which a reader finds either all or nothing. Types of wide elements come first, so that all are
// aligned; within a type the order is kept. UserError for block storages and for a name that comes twice.
void write_safetensors(const std::filesystem::path& path,
                       const std::vector<std::pair<std::string, HostTensor>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
std::map<std::string, HostTensor> read_safetensors(const std::filesystem::path& path);

}  // namespace hierarchos::formats
