// Conversations from anywhere, through the templates of the tests. The first byte chooses template and options; the
// rest is JSON: messages, or an object with messages, tools, documents and variables.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/os/file.h"
#include "template/chat_template.h"
#include "template/text.h"

using namespace hierarchos;

namespace {

const std::vector<ChatTemplates>& templates() {
  static const std::vector<ChatTemplates> all = [] {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(HIERARCHOS_SOURCE_DIR "/tests/text/chat/templates"))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<ChatTemplates> out;
    for (const auto& path : paths) {
      out.push_back(ChatTemplates::single(read_text_file(path), path.filename().string()));
      out.back().set_special_token("bos_token", "<s>");
      out.back().set_special_token("eos_token", "</s>");
    }
    return out;
  }();
  return all;
}

jinja::Value field(const jinja::Value& object, const char* name, jinja::Value fallback) {
  const jinja::Value* found = object.as_dict().find(name);
  return found == nullptr ? fallback : *found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    const std::string_view json(reinterpret_cast<const char*>(data) + 1, size - 1);
    const jinja::Value value = jinja::parse_json_value(json, "fuzz");
    ChatRequest request;
    request.messages = value;
    if (value.is(jinja::Type::Dict)) {
      request.messages = field(value, "messages", {});
      request.tools = field(value, "tools", jinja::Value::none());
      request.documents = field(value, "documents", jinja::Value::none());
      request.variables = field(value, "variables", {});
    }
    request.add_generation_prompt = (data[0] & 0x40) != 0;
    if ((data[0] & 0x80) != 0) request.continue_final_message = "content";
    RenderOptions options;
    options.limits.steps = 100'000;
    const ChatText out = templates()[(data[0] & 0x3F) % templates().size()].render(request, options);
    if (!jinja::text::valid(out.text, false)) __builtin_trap();
    const size_t length = jinja::text::length(out.text);
    for (const auto& span : out.generation_spans)
      if (span.first > span.second || span.second > length) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
