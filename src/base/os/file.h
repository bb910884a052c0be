// Files. Errors are UserError and name the path and the system's reason. Paths are the platform's own; what is written is
// bytes, without any translation of line ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hierarchos {

// A file mapped into memory, read-only. The file must not be cut while it is mapped. Movable; the bytes stay where they
// are until the object that owns them is destroyed.
class MappedFile {
 public:
  MappedFile() = default;  // no bytes
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// The whole file.
std::vector<std::byte> read_file(const std::filesystem::path& path);
std::string read_text_file(const std::filesystem::path& path);

// Is there a regular file (or a link to one)? False if it cannot be looked at.
bool file_exists(const std::filesystem::path& path);

// Writes a file so that, whatever happens (a crash, a full disk, no power), its path holds either what was there before or
// all of the new content: a temporary file in the same folder, flushed to the disk, then renamed, then the folder
// flushed. A link is followed; a device or pipe is a UserError, since it would be replaced.
class AtomicFileWriter {
 public:
  explicit AtomicFileWriter(std::filesystem::path path);
  ~AtomicFileWriter();  // without commit(): the temporary file is removed, the path is untouched
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  int64_t position() const { return position_; }  // bytes written so far
  void commit();  // once; nothing may be written after it

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int64_t position_ = 0;
};

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomic(const std::filesystem::path& path, std::string_view text);

// A new empty folder in the system's place for such, private to the user; removed with its content.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
inline TemporaryDirectory temporary_directory() { return {}; }

}  // namespace hierarchos
