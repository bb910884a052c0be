// Where models keep their chat templates.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/os/file.h"
#include "template/chat_template.h"

namespace hierarchos {
namespace {

using nlohmann::json;

bool ends_with_token(const std::string& key) {
  constexpr std::string_view suffix = "_token";
  return key.size() > suffix.size() && key.compare(key.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// A special token as tokenizer_config.json has it: its text, or an object with its content.
void take_token(ChatTemplates& out, const std::string& name, const json& token) {
  if (token.is_string())
    out.set_special_token(name, token.get<std::string>());
  else if (token.is_object() && token.contains("content") && token["content"].is_string())
    out.set_special_token(name, token["content"].get<std::string>());
}

void take_tokens(ChatTemplates& out, const json& config) {
  if (!config.is_object()) return;
  for (const auto& [key, value] : config.items())
    if (ends_with_token(key)) take_token(out, key, value);
  if (config.contains("extra_special_tokens") && config["extra_special_tokens"].is_object())
    for (const auto& [key, value] : config["extra_special_tokens"].items()) take_token(out, key, value);
}

void take_config_templates(ChatTemplates& out, const json& config, const std::string& where) {
  if (!config.is_object() || !config.contains("chat_template") || config["chat_template"].is_null()) return;
  const json& templates = config["chat_template"];
  if (templates.is_string()) {
    out.add("default", ChatTemplate(templates.get<std::string>(), where + ", chat_template"));
    return;
  }
  const auto malformed = [&] {
    return DataError("{}: chat_template must be a text, or a list of objects with name and template", where);
  };
  if (!templates.is_array()) throw malformed();
  for (const json& item : templates) {
    if (!item.is_object() || !item.contains("name") || !item["name"].is_string() || !item.contains("template") ||
        !item["template"].is_string())
      throw malformed();
    const auto name = item["name"].get<std::string>();
    out.add(name,
            ChatTemplate(item["template"].get<std::string>(), fmt::format("{}, chat_template \"{}\"", where, name)));
  }
}

std::vector<std::filesystem::path> additional_templates(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "additional_chat_templates", none))
    if (entry.path().extension() == ".jinja" && file_exists(entry.path())) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

ChatTemplates ChatTemplates::from_folder(const std::filesystem::path& folder) {
  ChatTemplates out;
  const auto config_path = folder / "tokenizer_config.json", map_path = folder / "special_tokens_map.json";
  if (file_exists(map_path)) take_tokens(out, read_json_file(map_path));
  const json config = file_exists(config_path) ? read_json_file(config_path) : json();
  take_tokens(out, config);
  const auto main = folder / "chat_template.jinja";
  if (file_exists(main)) out.add("default", ChatTemplate(read_text_file(main), main.string()));
  for (const auto& path : additional_templates(folder))
    out.add(path.stem().string(), ChatTemplate(read_text_file(path), path.string()));
  if (out.empty()) take_config_templates(out, config, config_path.string());
  return out;
}

ChatTemplates ChatTemplates::from_gguf(const formats::GgufFile& file) {
  ChatTemplates out;
  const std::string key = "tokenizer.chat_template";
  if (file.has(key)) out.add("default", ChatTemplate(file.text(key), fmt::format("{}, {}", file.where(), key)));
  if (file.has("tokenizer.chat_templates"))
    for (const std::string& name : file.texts("tokenizer.chat_templates")) {
      const std::string named = key + "." + name;
      if (file.has(named)) out.add(name, ChatTemplate(file.text(named), fmt::format("{}, {}", file.where(), named)));
    }
  if (!file.has("tokenizer.ggml.tokens")) return out;
  const std::vector<std::string> tokens = file.texts("tokenizer.ggml.tokens");
  static constexpr std::pair<const char*, const char*> kTokens[] = {
      {"bos_token", "bos_token_id"},       {"eos_token", "eos_token_id"}, {"unk_token", "unknown_token_id"},
      {"sep_token", "seperator_token_id"},  // the format's own spelling
      {"pad_token", "padding_token_id"},   {"cls_token", "cls_token_id"}, {"mask_token", "mask_token_id"}};
  for (const auto& [name, suffix] : kTokens) {
    const std::string id_key = std::string("tokenizer.ggml.") + suffix;
    if (!file.has(id_key)) continue;
    const int64_t id = file.integer(id_key);
    if (id < 0 || id >= static_cast<int64_t>(tokens.size()))
      throw DataError("{}: {} is {}, and there are {} tokens", file.where(), id_key, id, tokens.size());
    out.set_special_token(name, tokens[static_cast<size_t>(id)]);
  }
  return out;
}

ChatTemplates ChatTemplates::from_package(const formats::Package& package) {
  if (package.gguf() != nullptr) return from_gguf(*package.gguf());
  return from_folder(package.file("tokenizer_config.json").parent_path());
}

}  // namespace hierarchos
