// Rows of expected values.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report.h"

namespace hierarchos::text_golden {

// A value that is not the expected one; the message has both.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Lines of JSON; empty if there is no such file.
std::vector<nlohmann::json> read_rows(const std::filesystem::path& path);
// texts.jsonl by number.
std::map<int, std::string> read_texts(const std::filesystem::path& root);

void same(const std::string& what, const nlohmann::json& got, const nlohmann::json& want);
// Runs `check` on each row and counts; what it throws is a failure.
FileReport check_rows(const std::string& name, const std::vector<nlohmann::json>& rows,
                      const std::function<void(const nlohmann::json&)>& check);

}  // namespace hierarchos::text_golden
