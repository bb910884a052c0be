// Hugging Face's safetensors: a JSON header of names, types and offsets, then the bytes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "tensor/host_tensor.h"

namespace hierarchos::formats {

// A file whose header has been checked whole: sizes within the file, extents that fit their types, no overlaps, no holes, no
// name twice. Malformed files throw DataError naming file, tensor and reason.
class SafetensorsFile : public std::enable_shared_from_this<SafetensorsFile> {
 public:
  static std::shared_ptr<const SafetensorsFile> open(const std::filesystem::path& path);

  struct Entry {
    std::string dtype;             // as the file spells it: "F32", "F8_E4M3" …
    std::optional<DType> known;    // absent for types that we do not read
    Shape shape;
    size_t begin = 0, end = 0;     // bytes after the header
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  // Refers to the mapped file, which it keeps open. Throws UserError for a name that is not there, UnsupportedError for a type
  // that we do not read.
  HostTensor tensor(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void parse();
  [[noreturn]] void fail(const std::string& what) const;
  std::filesystem::path path_;
  MappedFile file_;
  size_t data_ = 0;  // where the bytes begin
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Writes the tensors in this order, so that a reader finds either all of the file or none. Plain storage only.
void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, HostTensor>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});
std::map<std::string, HostTensor> read_safetensors(const std::filesystem::path& path);

}  // namespace hierarchos::formats
