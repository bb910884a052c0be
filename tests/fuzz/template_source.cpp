// A chat template from anywhere: parsed, and rendered with a small conversation.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "template/chat_template.h"
#include "template/text.h"

using namespace hierarchos;

namespace {

const jinja::Value& variables() {
  static const jinja::Value value = jinja::parse_json_value(
      R"({"messages": [{"role": "system", "content": "Sys"}, {"role": "user", "content": "né 日本 😀\n"},
          {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null, true]}}}]}],
          "tools": [{"function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "array"}}}}}],
          "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "big": 12345678901234567890123})",
      "fuzz");
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  RenderOptions options;
  options.limits.steps = 20'000;  // so that many templates are tried
  options.limits.text_bytes = 1 << 20;
  options.limits.live_bytes = 16 << 20;
  options.clock = [] { return jinja::CivilTime{2024, 2, 29, 23, 59, 59, 999999}; };
  try {
    const ChatTemplate parsed(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    const ChatText first = parsed.render(variables(), options);
    if (!jinja::text::valid(first.text, false)) __builtin_trap();
    for (const auto& span : first.generation_spans)
      if (span.first > span.second) __builtin_trap();
    // A template has no memory: rendered again, it gives the same.
    if (parsed.render(variables(), options).text != first.text) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
