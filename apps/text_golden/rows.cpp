#include "rows.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/os/file.h"

namespace hierarchos::text_golden {

using nlohmann::json;

std::vector<json> read_rows(const std::filesystem::path& path) {
  std::vector<json> rows;
  if (!file_exists(path)) return rows;
  const std::string text = read_text_file(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin)
      rows.push_back(json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text.begin() + static_cast<std::ptrdiff_t>(end)));
    begin = end + 1;
  }
  return rows;
}

std::map<int, std::string> read_texts(const std::filesystem::path& root) {
  std::map<int, std::string> texts;
  for (const json& row : read_rows(root / "texts.jsonl")) texts[row["t"].get<int>()] = row["text"].get<std::string>();
  return texts;
}

void same(const std::string& what, const json& got, const json& want) {
  if (got == want) return;
  constexpr size_t kShown = 300;
  const auto shown = [](const json& value) {
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return text.size() > kShown ? text.substr(0, kShown) + "..." : text;
  };
  std::string where;
  if (got.is_array() && want.is_array()) {
    size_t i = 0;
    while (i < got.size() && i < want.size() && got[i] == want[i]) ++i;
    where = fmt::format(" (first at {} of {}, {})", i, got.size(), want.size());
  }
  throw Mismatch(fmt::format("{}{}: got {} want {}", what, where, shown(got), shown(want)));
}

FileReport check_rows(const std::string& name, const std::vector<json>& rows,
                      const std::function<void(const json&)>& check) {
  FileReport report(name);
  int64_t row_number = 0;
  for (const json& row : rows) {
    ++row_number;
    try {
      check(row);
      report.pass();
    } catch (const std::exception& e) {
      report.fail(fmt::format("row {}: {}", row_number, e.what()));
    }
  }
  return report;
}

}  // namespace hierarchos::text_golden
