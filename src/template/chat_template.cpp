#include "template/chat_template.h"

#include <algorithm>
#include <array>

#include "template/interpreter.h"
#include "template/parser.h"
#include "template/scopes.h"
#include "template/text.h"

namespace hierarchos {

using jinja::Value;
using jinja::Values;

struct ChatTemplate::Impl {
  jinja::Syntax syntax;
};

ChatTemplate::ChatTemplate(std::string source, std::string where)
    : source_(std::move(source)), where_(std::move(where)) {
  if (!jinja::text::valid(source_, false)) throw DataError("{}: the chat template is not UTF-8", where_);
  try {
    auto impl = std::make_unique<Impl>();
    impl->syntax = jinja::parse(source_, jinja::Limits());
    jinja::resolve_names(impl->syntax);
    impl_ = std::move(impl);
  } catch (const jinja::SyntaxFailure& f) {
    throw TemplateError(where_, f.line, f.kind, f.message);
  } catch (const jinja::Failure& f) {
    throw TemplateError(where_, 1, f.kind, f.message);
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

ChatText ChatTemplate::render(const Value& variables, const RenderOptions& options) const {
  jinja::Interpreter interpreter(impl_->syntax, variables, options.limits, options.clock);
  try {
    ChatText out;
    out.text = interpreter.render();
    out.generation_spans = interpreter.generation_spans();
    return out;
  } catch (const jinja::Failure& f) {
    throw TemplateError(where_, interpreter.line(), f.kind, f.message);
  }
}

ChatTemplates ChatTemplates::single(std::string source, std::string where) {
  ChatTemplates out;
  out.add("default", ChatTemplate(std::move(source), std::move(where)));
  return out;
}

void ChatTemplates::add(const std::string& name, ChatTemplate chat_template) {
  templates_.insert_or_assign(name, std::move(chat_template));
}

std::vector<std::string> ChatTemplates::names() const {
  std::vector<std::string> out;
  for (const auto& item : templates_) out.push_back(item.first);
  return out;
}

const ChatTemplate& ChatTemplates::choose(const ChatRequest& request) const {
  if (empty()) throw UserError("the model has no chat template; give one, or a prompt without chat");
  const auto find = [&](const std::string& name) { return templates_.find(name); };
  auto found = templates_.end();
  if (request.template_name) {
    found = find(*request.template_name);
  } else {
    if (!request.tools.is_none() && !request.tools.missing()) found = find("tool_use");
    if (found == templates_.end()) found = find("default");
  }
  if (found != templates_.end()) return found->second;
  std::string all;
  for (const std::string& name : names()) all += (all.empty() ? "" : ", ") + name;
  if (request.template_name)
    throw UserError("the model has no chat template '{}'; it has: {}", *request.template_name, all);
  throw UserError("the model has several chat templates and no default; name one of: {}", all);
}

namespace {

using Items = std::vector<std::pair<Value, Value>>;

constexpr std::array kReasoningFields = {"reasoning_content", "thinking", "reasoning"};
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";

bool is_reasoning(const std::string& field) {
  return std::find(kReasoningFields.begin(), kReasoningFields.end(), field) != kReasoningFields.end();
}

const Value* find(const Items& items, std::string_view key) {
  const auto at = std::find_if(items.begin(), items.end(),
                               [&](const auto& item) { return item.first.is_text() && item.first.str() == key; });
  return at == items.end() ? nullptr : &at->second;
}

void set(Items& items, std::string_view key, Value value) {
  for (auto& item : items)
    if (item.first.is_text() && item.first.str() == key) {
      item.second = std::move(value);
      return;
    }
  items.emplace_back(Value::text(std::string(key)), std::move(value));
}

void check_dicts(const Value& list, const char* what) {
  if (list.is_none() || list.missing()) return;
  if (!list.is(jinja::Type::List)) throw UserError("{} must be a list of objects", what);
  for (const Value& item : list.items())
    if (!item.is(jinja::Type::Dict)) throw UserError("{} must be a list of objects", what);
}

// Reasoning goes by several names; each template knows one of the first two.
void alias_reasoning(Items& message) {
  const Value* reasoning = nullptr;
  for (const char* field : kReasoningFields)
    if (reasoning == nullptr) reasoning = find(message, field);
  if (reasoning == nullptr) return;
  const Value value = *reasoning;
  const Value* thinking = find(message, "thinking");
  const Value first = thinking != nullptr ? *thinking : value;
  std::erase_if(message, [](const auto& item) { return item.first.is_text() && item.first.str() == "thinking"; });
  message.insert(message.begin(), {Value::text("thinking"), first});
  set(message, "reasoning_content", value);
}

// The messages as templates see them: without keys whose value is null, and with reasoning under its usual names.
std::vector<Items> normalized(const Value& messages) {
  if (!messages.is(jinja::Type::List)) throw UserError("messages must be a list of objects with role and content");
  if (messages.items().empty()) throw UserError("an empty conversation cannot be rendered; give at least one message");
  std::vector<Items> out;
  for (const Value& message : messages.items()) {
    if (!message.is(jinja::Type::Dict)) throw UserError("messages must be a list of objects with role and content");
    Items items;
    for (const auto& item : message.as_dict().items)
      if (!item.second.is_none()) items.push_back(item);
    alias_reasoning(items);
    out.push_back(std::move(items));
  }
  return out;
}

// Marks the end of the message that is to be continued. Returns its text.
std::string mark_end(Items& message, const std::string& field, const std::string& source) {
  const Value* found = find(message, field);
  if (found == nullptr) throw UserError("the last message has no \"{}\" to continue", field);
  const Value content = *found;
  std::vector<std::string> fields = {field};
  if (is_reasoning(field)) {
    fields.clear();
    for (const char* name : kReasoningFields)
      if (const Value* same = find(message, name); same != nullptr && jinja::equal(*same, content))
        fields.emplace_back(name);
  }
  if (std::none_of(fields.begin(), fields.end(),
                   [&](const std::string& f) { return source.find(f) != std::string::npos; }))
    throw UserError("\"{}\" cannot be continued: the chat template does not use it", field);
  const auto tagged = [](const Value& text) {
    if (!text.is_text()) throw UserError("only a text can be continued");
    return Value::text(text.str() + std::string(kTag));
  };
  if (!content.is(jinja::Type::List)) {
    for (const std::string& name : fields) set(message, name, tagged(*find(message, name)));
    return content.str();
  }
  Values blocks = content.items();
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (!block->is(jinja::Type::Dict)) continue;
    Items items = block->as_dict().items;
    const Value* text = find(items, "text");
    if (text == nullptr) continue;
    const Value marked = tagged(*text);
    std::string out = text->str();
    set(items, "text", marked);
    *block = Value::dict(std::move(items));
    set(message, field, Value::list(std::move(blocks)));
    return out;
  }
  throw UserError("the last message has no text to continue");
}

// Cuts the rendered text at the mark.
std::string cut_at_mark(std::string text, const std::string& message) {
  namespace t = jinja::text;
  const std::string_view tag = kTag.substr(0, kTag.size() - 1);
  const size_t at = text.rfind(tag);
  if (at == std::string::npos || text.find(t::strip(message, true, true)) == std::string::npos)
    throw UserError("the last message cannot be continued: the chat template changes or drops it");
  const bool space_kept = text.compare(at, kTag.size(), kTag) == 0;
  text.resize(at);
  if (!space_kept) text.resize(t::strip(text, false, true).size());
  return text;
}

}  // namespace

ChatText ChatTemplates::render(const ChatRequest& request, const RenderOptions& options) const {
  const ChatTemplate& chosen = choose(request);
  if (request.continue_final_message && request.add_generation_prompt)
    throw UserError("the last message cannot be continued and a new one begun at once");
  check_dicts(request.tools, "tools");
  check_dicts(request.documents, "documents");
  std::vector<Items> messages = normalized(request.messages);
  std::string continued;
  if (request.continue_final_message)
    continued = mark_end(messages.back(), *request.continue_final_message, chosen.source());

  const auto or_none = [](const Value& v) { return v.missing() ? Value::none() : v; };
  Values list;
  for (Items& message : messages) list.push_back(Value::dict(std::move(message)));
  Items variables;
  for (const auto& [name, text] : special_tokens_) variables.emplace_back(Value::text(name), Value::text(text));
  if (!request.variables.missing()) {
    if (!request.variables.is(jinja::Type::Dict)) throw UserError("the variables of a chat template must be an object");
    for (const auto& item : request.variables.as_dict().items) variables.push_back(item);
  }
  for (const char* name : {"messages", "tools", "documents", "add_generation_prompt"})
    if (find(variables, name) != nullptr) throw UserError("the variable \"{}\" is the chat template's own", name);
  set(variables, "messages", Value::list(std::move(list)));
  set(variables, "tools", or_none(request.tools));
  set(variables, "documents", or_none(request.documents));
  set(variables, "add_generation_prompt", Value::boolean(request.add_generation_prompt));

  ChatText out = chosen.render(Value::dict(std::move(variables)), options);
  if (request.continue_final_message) {
    out.text = cut_at_mark(std::move(out.text), continued);
    out.generation_spans.clear();  // they would count the mark
  }
  return out;
}

std::vector<uint8_t> assistant_mask(std::span<const std::pair<size_t, size_t>> offsets,
                                    std::span<const std::pair<size_t, size_t>> spans) {
  std::vector<uint8_t> mask(offsets.size());
  size_t s = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    while (s < spans.size() && offsets[i].first >= spans[s].second) ++s;
    if (s == spans.size()) break;
    mask[i] = offsets[i].second > spans[s].first;
  }
  return mask;
}

}  // namespace hierarchos
