// Chat templates: conversations, one-line snippets, published templates, spans of generation.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/os/file.h"
#include "report.h"
#include "template/chat_template.h"

namespace hierarchos::text_golden {
namespace {

using jinja::Value;
using nlohmann::json;

// The moment at which the reference rendered: Thursday, 5 March 2026.
jinja::CivilTime fixed_clock() { return {2026, 3, 5, 14, 7, 9, 0}; }

RenderOptions render_options() {
  RenderOptions options;
  options.clock = fixed_clock;
  return options;
}

Value read_value(const std::filesystem::path& path) {
  return jinja::parse_json_value(read_text_file(path), path.string());
}

// Rows as values, so that large integers stay exact.
std::vector<Value> read_rows(const std::filesystem::path& path) {
  std::vector<Value> rows;
  std::ifstream file(path);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty()) rows.push_back(jinja::parse_json_value(line, fmt::format("{}:{}", path.string(), number)));
  }
  return rows;
}

Value field(const Value& row, std::string_view key) {
  const Value* found = row.as_dict().find(key);
  return found == nullptr ? Value() : *found;
}
std::string text(const Value& row, std::string_view key) {
  const Value v = field(row, key);
  return v.is_text() ? v.str() : "";
}
bool flag(const Value& row, std::string_view key) { return jinja::truthy(field(row, key)); }

Value merged(const Value& a, const Value& b) {
  std::vector<std::pair<Value, Value>> items;
  for (const Value* v : {&a, &b})
    if (v->is(jinja::Type::Dict)) items.insert(items.end(), v->as_dict().items.begin(), v->as_dict().items.end());
  return Value::dict(std::move(items));
}

std::string shown(const std::string& s) {
  std::string out = json(s).dump(-1, ' ', true, json::error_handler_t::replace);
  return out.size() > 400 ? out.substr(0, 400) + "…" : out;
}

// Runs one case and compares with `out`, or with `error` and `message`.
template <typename Render>
void compare(FileReport& report, const std::string& name, const Value& row, Render render) {
  const bool must_fail = !field(row, "error").missing();
  try {
    const std::string out = render();
    if (must_fail)
      report.fail(fmt::format("{}: rendered {}, but the reference says {}", name, shown(out), text(row, "message")));
    else
      report.check(out == text(row, "out"),
                   fmt::format("{}: {} instead of {}", name, shown(out), shown(text(row, "out"))));
  } catch (const TemplateError& e) {
    if (!must_fail)
      report.fail(fmt::format("{}: {}", name, e.what()));
    else
      report.check(
          text(row, "error") != "TemplateError" || (e.raised_by_template() && e.message() == text(row, "message")),
          fmt::format("{}: \"{}\" instead of \"{}\"", name, e.message(), text(row, "message")));
  } catch (const Error& e) {
    report.check(must_fail && text(row, "error") != "TemplateError", fmt::format("{}: {}", name, e.what()));
  }
}

class ChatCases {
 public:
  explicit ChatCases(const Options& options) : folder_(options.root / "chat"), real_(options.real) {
    if (has("conversations.json")) conversations_ = read_value(folder_ / "conversations.json");
  }

  bool has(const char* file) const { return file_exists(folder_ / file); }

  FileReport own_templates() {
    FileReport report("chat/expected.jsonl");
    ChatTemplates* const none = nullptr;
    std::map<std::string, std::unique_ptr<ChatTemplates>> loaded;
    for (const Value& row : read_rows(folder_ / "expected.jsonl")) {
      const std::string name = text(row, "template");
      auto& templates = loaded[name];
      if (templates.get() == none) {
        const auto path = folder_ / "templates" / (name + ".jinja");
        templates = std::make_unique<ChatTemplates>(ChatTemplates::single(read_text_file(path), path.string()));
        for (const auto& [token, spelling] : {std::pair("bos_token", "<s>"), std::pair("eos_token", "</s>"),
                                              std::pair("unk_token", "<unk>"), std::pair("pad_token", "<pad>")})
          templates->set_special_token(token, spelling);
      }
      conversation(report, *templates, row);
    }
    return report;
  }

  FileReport snippets() const {
    FileReport report("chat/snippets.jsonl");
    const Value context = read_value(folder_ / "snippet_context.json");
    for (const Value& row : read_rows(folder_ / "snippets.jsonl")) {
      const std::string source = text(row, "src");
      compare(report, shown(source), row, [&] {
        const ChatTemplate parsed(source, "snippet");
        return parsed.render(merged(context, field(row, "ctx")), render_options()).text;
      });
    }
    return report;
  }

  FileReport spans() const {
    FileReport report("chat/assistant_masks.jsonl");
    const auto path = folder_ / "templates" / "generation.jinja";
    const ChatTemplates templates = ChatTemplates::single(read_text_file(path), path.string());
    for (const Value& row : read_rows(folder_ / "assistant_masks.jsonl")) {
      const std::string name = text(row, "conversation");
      ChatRequest request = request_of(row);
      request.variables = {};  // the masks were made without
      request.tools = request.documents = Value::none();
      if (!field(row, "error").missing()) {
        compare(report, name, row, [&] { return templates.render(request, render_options()).text; });
        continue;
      }
      const ChatText got = templates.render(request, render_options());
      std::vector<std::pair<size_t, size_t>> wanted;
      for (const Value& span : field(row, "spans").items())
        wanted.emplace_back(span.items()[0].as_int(), span.items()[1].as_int());
      report.check(got.text == text(row, "text") && got.generation_spans == wanted,
                   fmt::format("{}: text or spans differ: {}", name, shown(got.text)));
    }
    return report;
  }

  FileReport published_templates() {
    FileReport report("chat/expected_real.jsonl");
    const std::vector<Value> rows = read_rows(folder_ / "expected_real.jsonl");
    if (real_.empty()) {
      report.skip(static_cast<int64_t>(rows.size()), "published templates need --real");
      return report;
    }
    std::map<std::string, ChatTemplates> loaded;
    for (const json& entry : read_json_file(folder_ / "real_templates.json"))
      loaded.emplace(entry["name"].get<std::string>(), published(entry));
    for (const Value& row : rows) conversation(report, loaded.at(text(row, "template")), row);
    return report;
  }

 private:
  ChatTemplates published(const json& entry) const {
    std::string package = entry["package"].get<std::string>() + "@" + entry["version"].get<std::string>();
    std::replace(package.begin(), package.end(), '/', '+');
    const auto path = real_ / package / entry["path"].get<std::string>();
    const bool config = path.extension() == ".json";
    ChatTemplates out = ChatTemplates::single(
        config ? read_json_file(path)["chat_template"].get<std::string>() : read_text_file(path), path.string());
    for (const auto& [name, token] : entry["special"].items()) out.set_special_token(name, token.get<std::string>());
    return out;
  }

  ChatRequest request_of(const Value& row) const {
    const Value conversation = field(conversations_, text(row, "conversation"));
    if (conversation.missing()) throw DataError("conversations.json has no \"{}\"", text(row, "conversation"));
    ChatRequest request;
    request.messages = field(conversation, "messages");
    request.tools = field(conversation, "tools");
    request.documents = field(conversation, "documents");
    request.variables = merged(field(conversation, "kwargs"), field(row, "kwargs"));
    request.add_generation_prompt = flag(row, "gen");
    if (flag(row, "continue")) request.continue_final_message = "content";
    return request;
  }

  void conversation(FileReport& report, const ChatTemplates& templates, const Value& row) const {
    const std::string name = fmt::format("{} {}{}{}", text(row, "template"), text(row, "conversation"),
                                         flag(row, "gen") ? " gen" : "", flag(row, "continue") ? " continue" : "");
    compare(report, name, row, [&] { return templates.render(request_of(row), render_options()).text; });
  }

  std::filesystem::path folder_, real_;
  Value conversations_;
};

}  // namespace

Reports run_chat(const Options& options) {
  ChatCases cases(options);
  Reports out;
  if (cases.has("expected.jsonl")) out.push_back(cases.own_templates());
  if (cases.has("snippets.jsonl")) out.push_back(cases.snippets());
  if (cases.has("assistant_masks.jsonl")) out.push_back(cases.spans());
  if (cases.has("expected_real.jsonl")) out.push_back(cases.published_templates());
  return out;
}

}  // namespace hierarchos::text_golden
