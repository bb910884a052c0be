// Chat templates: from messages to the text that a model reads, exactly as Hugging Face transformers'
// apply_chat_template renders it. docs/chat-templates.md says what is supported.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/package.h"
#include "template/clock.h"
#include "template/error.h"
#include "template/json.h"
#include "template/meter.h"
#include "template/value.h"

namespace hierarchos {

// Rendered text.
struct ChatText {
  std::string text;
  // What stands in the template's {% generation %} blocks, which is what a model learns to write: begin and end in code
  // points of the text.
  std::vector<std::pair<size_t, size_t>> generation_spans;
};

struct RenderOptions {
  jinja::Limits limits;
  jinja::Clock clock = jinja::local_time_now;  // for strftime_now
};

// One template. Parsed once, rendered by any number of threads.
class ChatTemplate {
 public:
  // `where` names it in errors. Throws TemplateError with the line where the template is malformed.
  ChatTemplate(std::string source, std::string where);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `variables`: a dict, what the template sees. Throws TemplateError.
  ChatText render(const jinja::Value& variables, const RenderOptions& options = {}) const;
  const std::string& source() const { return source_; }
  const std::string& where() const { return where_; }

 private:
  struct Impl;
  std::string source_, where_;
  std::unique_ptr<const Impl> impl_;
};

// A conversation and how to render it. jinja::json_value() and jinja::parse_json_value() make values from JSON.
struct ChatRequest {
  jinja::Value messages;                          // a list of dicts: role, content, tool_calls …
  jinja::Value tools = jinja::Value::none();      // a list of dicts: JSON schemas of functions
  jinja::Value documents = jinja::Value::none();  // a list of dicts: title, text
  jinja::Value variables;                         // a dict of further variables (enable_thinking …), or missing
  bool add_generation_prompt = false;             // end with what makes the model answer
  // Leave the last message open at the end of this field (mostly "content"), for the model to go on with.
  std::optional<std::string> continue_final_message;
  std::optional<std::string>
      template_name;  // of several; by default the one for tools if there are any, then "default"
};

// The templates of a model, with the special tokens that they may name (bos_token, eos_token …).
class ChatTemplates {
 public:
  ChatTemplates() = default;  // none
  // A folder's chat_template.jinja and additional_chat_templates/*.jinja, or else chat_template in its
  // tokenizer_config.json, one or a list with names; or a GGUF file's tokenizer.chat_template. All are parsed at once:
  // throws TemplateError for a malformed one.
  static ChatTemplates from_package(const formats::Package& package);
  static ChatTemplates from_folder(const std::filesystem::path& folder);
  static ChatTemplates from_gguf(const formats::GgufFile& file);
  static ChatTemplates single(std::string source, std::string where);

  void add(const std::string& name, ChatTemplate chat_template);
  void set_special_token(const std::string& name, const std::string& text) { special_tokens_[name] = text; }
  const std::map<std::string, std::string>& special_tokens() const { return special_tokens_; }

  bool empty() const { return templates_.empty(); }
  std::vector<std::string> names() const;
  // UserError when there is none of the name, none at all, or several and no default.
  const ChatTemplate& choose(const ChatRequest& request) const;
  // UserError for a conversation that cannot be rendered as asked, TemplateError where the template fails or refuses
  // it.
  ChatText render(const ChatRequest& request, const RenderOptions& options = {}) const;

 private:
  std::map<std::string, ChatTemplate> templates_;
  std::map<std::string, std::string> special_tokens_;
};

// 1 for each token that overlaps a span, else 0. `offsets`: begin and end of each token, in code points of the text;
// both in order.
std::vector<uint8_t> assistant_mask(std::span<const std::pair<size_t, size_t>> offsets,
                                    std::span<const std::pair<size_t, size_t>> spans);

}  // namespace hierarchos
