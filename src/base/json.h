// Reading of JSON as the field writes it. Beyond the standard: NaN, Infinity and -Infinity (Python's json module writes
// them), also as the object {"__float__": "Infinity"}; both become the floating number. Repeated keys are an error, since
// readers disagree on which counts. Nesting is limited to 500.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hierarchos {

// `where` names the text in errors, which are DataError: "config.json:3:14: ...", lines and columns (in bytes) from 1.
nlohmann::json parse_json(std::string_view text, const std::string& where);
// Keeps the order of keys, for what is shown to a model or written back.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where);

// UserError if the file cannot be read, DataError if it is malformed.
nlohmann::json read_json_file(const std::filesystem::path& path);
nlohmann::ordered_json read_ordered_json_file(const std::filesystem::path& path);

// A number that survives dump() (which writes null for NaN and infinities): {"__float__": "NaN"} and so on for those.
nlohmann::json json_number(double value);

}  // namespace hierarchos
