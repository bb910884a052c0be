#include "base/os/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace hierarchos {
namespace {

namespace fs = std::filesystem;

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(File, WritesAndReads) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "a file";
  EXPECT_FALSE(file_exists(path));
  write_file_atomic(path, std::string_view("first\r\n\0x", 9));
  EXPECT_TRUE(file_exists(path));
  EXPECT_EQ(read_text_file(path), std::string("first\r\n\0x", 9));
  write_file_atomic(path, "second");
  EXPECT_EQ(read_text_file(path), "second");
  EXPECT_EQ(read_file(path).size(), 6u);
  write_file_atomic(path, "");
  EXPECT_EQ(read_text_file(path), "");
  EXPECT_EQ(files_in(folder.path()), 1u);
  EXPECT_FALSE(file_exists(folder.path()));
}

TEST(File, ReadsFilesWhoseSizeIsNotKnown) {
  if (file_exists("/proc/self/status")) {
    EXPECT_NE(read_text_file("/proc/self/status").find("VmRSS"), std::string::npos);
  }
}

TEST(File, StreamsInPieces) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "pieces";
  std::string expected;
  AtomicFileWriter writer(path);
  for (size_t i = 0; i < 200; ++i) {  // small and large, over the buffer's size several times
    const std::string piece(i % 50 == 49 ? 300000 : i * 97, static_cast<char>('a' + i % 26));
    writer.write(piece);
    expected += piece;
    EXPECT_EQ(writer.position(), static_cast<int64_t>(expected.size()));
  }
  EXPECT_FALSE(file_exists(path));
  writer.commit();
  EXPECT_TRUE(read_text_file(path) == expected);
  EXPECT_THROW(writer.write("more"), Error);
  EXPECT_THROW(writer.commit(), Error);
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(File, WithoutCommitNothingChanges) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "kept";
  write_file_atomic(path, "old");
  {
    AtomicFileWriter writer(path);
    writer.write("new");
  }
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(File, LinksAreFollowedAndDevicesStay) {
  const TemporaryDirectory folder;
  fs::create_directory(folder.path() / "far");
  fs::create_symlink("far/target", folder.path() / "near");
  fs::create_symlink("near", folder.path() / "nearer");
  write_file_atomic(folder.path() / "nearer", "first");  // the target is not there yet
  write_file_atomic(folder.path() / "near", "second");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "near"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "nearer"));
  EXPECT_EQ(read_text_file(folder.path() / "far/target"), "second");
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_THROW(write_file_atomic(folder.path() / "loop", "x"), UserError);
  EXPECT_THROW(write_file_atomic("/dev/null", "x"), UserError);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// The process's umask decides who may read it, as for any other file.
TEST(File, HasOrdinaryPermissions) {
  const TemporaryDirectory folder;
  write_file_atomic(folder.path() / "ours", "x");
  std::ofstream(folder.path() / "theirs") << "x";
  EXPECT_EQ(fs::status(folder.path() / "ours").permissions(), fs::status(folder.path() / "theirs").permissions());
}

TEST(File, LongNames) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / std::string(255, 'n');
  write_file_atomic(path, "x");
  EXPECT_EQ(read_text_file(path), "x");
}

TEST(File, ErrorsNamePathAndReason) {
  const TemporaryDirectory folder;
  const fs::path missing = folder.path() / "no-such";
  const std::string reason = "'" + missing.string() + "': No such file or directory";
  EXPECT_EQ(error_of([&] { read_file(missing); }), "cannot open " + reason);
  EXPECT_EQ(error_of([&] { MappedFile file(missing); }), "cannot open " + reason);
  EXPECT_EQ(error_of([&] { write_file_atomic(missing / "x", "y"); }),
            "cannot write '" + (missing / "x").string() + "': No such file or directory");
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }),
            "cannot read '" + folder.path().string() + "': Is a directory");
  EXPECT_EQ(error_of([&] { MappedFile file(folder.path()); }),
            "cannot read '" + folder.path().string() + "': Is a directory");
  EXPECT_EQ(error_of([&] { write_file_atomic(folder.path(), "y"); }),
            "cannot write '" + folder.path().string() + "': Is a directory");
  EXPECT_EQ(error_of([] { write_file_atomic("", "y"); }), "cannot write '': it names no file");
  EXPECT_EQ(error_of([] { MappedFile file("/dev/null"); }), "cannot map '/dev/null': it is not a regular file");
}

// A file larger than the process may write stands for a full disk: an error, and nothing is left behind.
TEST(File, FailedWritesLeaveNothing) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "large";
  write_file_atomic(path, "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 100000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of([&] { write_file_atomic(path, std::string(1000000, 'x')); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "cannot write '" + path.string() + "': File too large");
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(MappedFile, MapsAndMoves) {
  const TemporaryDirectory folder;
  const fs::path path = folder.path() / "mapped";
  const std::string content(100000, 'm');
  write_file_atomic(path, content);
  MappedFile file(path);
  ASSERT_EQ(file.bytes().size(), content.size());
  EXPECT_EQ(std::memcmp(file.bytes().data(), content.data(), content.size()), 0);
  const auto* const address = file.bytes().data();
  MappedFile moved(std::move(file));
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(moved.path(), path);
  MappedFile assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.bytes().data(), address);
  fs::remove(path);  // the mapping stays
  EXPECT_EQ(assigned.bytes()[content.size() - 1], std::byte{'m'});

  write_file_atomic(path, "");
  EXPECT_TRUE(MappedFile(path).bytes().empty());
}

TEST(TemporaryDirectory, RemovesItsContent) {
  fs::path path;
  {
    TemporaryDirectory folder = temporary_directory();
    path = folder.path();
    fs::create_directories(path / "a" / "b");
    write_file_atomic(path / "a" / "b" / "c", "x");
    const TemporaryDirectory moved(std::move(folder));
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace hierarchos
