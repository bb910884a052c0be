#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/os/file.h"

namespace hierarchos {
namespace {

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path, int error) {
  throw UserError("cannot {} '{}': {}", what, path.string(), std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // 0, or the error: some file systems report a failed write only here.
  int close() {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
  }

 private:
  int fd_;
};

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd = -1;
  do fd = ::open(path, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

int open_to_read(const std::filesystem::path& path, struct stat& status) {
  const int fd = open_retrying(path.c_str(), O_RDONLY);
  if (fd < 0) fail("open", path, errno);
  const int error = ::fstat(fd, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (error != 0) {
    ::close(fd);
    fail("read", path, error);
  }
  return fd;
}

// Reads to the end: the size that the system states is a hint only (files of /proc say 0, pipes nothing).
template <typename Container>
Container read_all(const std::filesystem::path& path) {
  struct stat status {};
  const Descriptor file(open_to_read(path, status));
  Container content;
  size_t filled = 0;
  content.resize(status.st_size > 0 ? static_cast<size_t>(status.st_size) + 1 : 4096);
  for (;;) {
    if (filled == content.size()) content.resize(content.size() * 2);
    const ssize_t n = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path, errno);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  content.resize(filled);
  return content;
}

int fsync_retrying(int fd) {
  int result = 0;
  do result = ::fsync(fd);
  while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path) { return read_all<std::vector<std::byte>>(path); }
std::string read_text_file(const std::filesystem::path& path) { return read_all<std::string>(path); }

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  const Descriptor file(open_to_read(path, status));
  if (!S_ISREG(status.st_mode)) throw UserError("cannot map '{}': it is not a regular file", path.string());
  if (status.st_size == 0) return;  // an empty mapping is an error to the system
  const auto size = static_cast<size_t>(status.st_size);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail("map", path, errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

namespace {

// Where a link leads, also to a file that is not there yet; at most as far as the system would follow.
std::filesystem::path followed(std::filesystem::path path) {
  std::error_code error;
  for (int hops = 0; std::filesystem::is_symlink(path, error); ++hops) {
    if (hops == 40) fail("write", path, ELOOP);
    const std::filesystem::path to = std::filesystem::read_symlink(path, error);
    if (error) fail("write", path, error.value());
    path = path.parent_path() / to;  // `to` alone if it is absolute
  }
  return path;
}

}  // namespace

struct AtomicFileWriter::Impl {
  static constexpr size_t kBuffer = 256 << 10;

  std::filesystem::path path;
  std::filesystem::path folder;
  std::filesystem::path temporary;
  Descriptor file;
  std::vector<std::byte> buffer;
  bool committed = false;

  explicit Impl(std::filesystem::path target)
      : path(followed(std::move(target))), folder(path.has_parent_path() ? path.parent_path() : "."), file(create()) {
    buffer.reserve(kBuffer);
  }

  ~Impl() {
    if (!committed) ::unlink(temporary.c_str());
  }

  int create() {
    if (!path.has_filename()) throw UserError("cannot write '{}': it names no file", path.string());
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) fail("write", path, EISDIR);
    if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
      throw UserError("cannot write '{}': it is a device or pipe, not a file", path.string());
    static std::atomic<unsigned> counter{0};
    for (;;) {
      // Names of files are limited to 255 bytes; a part of the name tells a person what the file was.
      temporary = folder / fmt::format(".{}.{}-{}.tmp", path.filename().string().substr(0, 200), ::getpid(), counter++);
      const int fd = open_retrying(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
      if (fd >= 0) return fd;
      if (errno != EEXIST) fail("write", path, errno);
    }
  }

  void send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write", path, errno);
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }

  void flush() {
    send(buffer);
    buffer.clear();
  }
};

AtomicFileWriter::AtomicFileWriter(std::filesystem::path path) : impl_(std::make_unique<Impl>(std::move(path))) {}
AtomicFileWriter::~AtomicFileWriter() = default;

void AtomicFileWriter::write(std::span<const std::byte> bytes) {
  if (impl_->committed) throw Error(fmt::format("'{}' was written to after commit", impl_->path.string()));
  if (impl_->buffer.size() + bytes.size() > Impl::kBuffer) impl_->flush();
  if (bytes.size() >= Impl::kBuffer)
    impl_->send(bytes);
  else
    impl_->buffer.insert(impl_->buffer.end(), bytes.begin(), bytes.end());
  position_ += static_cast<int64_t>(bytes.size());
}

void AtomicFileWriter::commit() {
  Impl& w = *impl_;
  if (w.committed) throw Error(fmt::format("'{}' was committed twice", w.path.string()));
  w.flush();
  if (const int error = fsync_retrying(w.file.get())) fail("write", w.path, error);
  if (const int error = w.file.close()) fail("write", w.path, error);
  if (::rename(w.temporary.c_str(), w.path.c_str()) != 0) fail("write", w.path, errno);
  w.committed = true;
  const Descriptor folder(open_retrying(w.folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (folder.get() < 0) return;  // a folder that may be written but not read cannot be flushed
  const int error = fsync_retrying(folder.get());
  if (error != 0 && error != EINVAL && error != ENOTSUP) fail("flush the folder", w.folder, error);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "hierarchos-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail("create a temporary folder", name, errno);
  path_ = name;
}

}  // namespace hierarchos
