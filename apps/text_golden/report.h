// What the golden cases of texts come to: one line a file, and a sum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hierarchos::text_golden {

// The cases of one file.
class FileReport {
 public:
  explicit FileReport(std::string name) : name_(std::move(name)) {}

  void pass() { ++passed_; }
  // `what` names the row and says what differs; the first is shown.
  void fail(const std::string& what) {
    if (failed_++ == 0) first_failure_ = what;
  }
  void check(bool good, const std::string& what) { good ? pass() : fail(what); }
  // Cases that were not run, and why.
  void skip(int64_t count, const std::string& why) {
    skipped_ += count;
    why_skipped_ = why;
  }

  const std::string& name() const { return name_; }
  int64_t passed() const { return passed_; }
  int64_t failed() const { return failed_; }
  int64_t skipped() const { return skipped_; }
  const std::string& first_failure() const { return first_failure_; }
  const std::string& why_skipped() const { return why_skipped_; }

 private:
  std::string name_, first_failure_, why_skipped_;
  int64_t passed_ = 0, failed_ = 0, skipped_ = 0;
};

struct Options {
  std::filesystem::path root;  // with chat/, texts.jsonl, tokenizers/, expected/, components/, spm/; any may be missing
  std::filesystem::path real;  // where published packages lie; empty: their cases are skipped
};

using Reports = std::vector<FileReport>;
Reports run_chat(const Options& options);
Reports run_tokenizers(const Options& options);

}  // namespace hierarchos::text_golden
