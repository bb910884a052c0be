// Conversations, the places where templates are kept, spans. Values are those of transformers' apply_chat_template.
#include "template/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/os/file.h"
#include "formats/testing/gguf_builder.h"

namespace hierarchos {
namespace {

using jinja::Value;

Value values(const char* json) { return jinja::parse_json_value(json, "test"); }

const char* const kHello = R"([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there "}])";
const char* const kSimple =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

ChatTemplates templates(const char* source) {
  ChatTemplates out = ChatTemplates::single(source, "test");
  out.set_special_token("eos_token", "</s>");
  return out;
}

ChatRequest request(const char* messages) {
  ChatRequest out;
  out.messages = values(messages);
  return out;
}

TEST(ChatTemplate, GenerationPrompt) {
  ChatRequest r = request(kHello);
  EXPECT_EQ(templates(kSimple).render(r).text, "<user>Hello</s><assistant>Hi there </s>");
  r.add_generation_prompt = true;
  EXPECT_EQ(templates(kSimple).render(r).text, "<user>Hello</s><assistant>Hi there </s><assistant>");
}

TEST(ChatTemplate, ContinueFinalMessage) {
  ChatRequest r = request(kHello);
  r.continue_final_message = "content";
  EXPECT_EQ(templates(kSimple).render(r).text, "<user>Hello</s><assistant>Hi there ");
  // A template that strips: the space at the end goes, too.
  EXPECT_EQ(templates("{% for m in messages %}{{ m.role }}: {{ m.content|trim }};{% endfor %}").render(r).text,
            "user: Hello;assistant: Hi there");
  EXPECT_THROW(templates("{% for m in messages %}{{ m.content|upper }}{% endfor %}").render(r), UserError);
  EXPECT_THROW(templates("{{ messages }}").render(r), UserError);
  r.add_generation_prompt = true;
  EXPECT_THROW(templates(kSimple).render(r), UserError);
}

TEST(ChatTemplate, ContinueBlocksAndReasoning) {
  ChatRequest r = request(
      R"([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "image"}]}])");
  r.continue_final_message = "content";
  const char* const blocks = "{% for c in messages[0].content %}[{{ c.text }}]{% endfor %}";
  EXPECT_EQ(templates(blocks).render(r).text, "[a][b");
  r = request(R"([{"role": "assistant", "reasoning": "so"}])");
  r.continue_final_message = "reasoning";
  EXPECT_EQ(templates("<{{ messages[0].reasoning_content }}>").render(r).text, "<so");
  EXPECT_THROW(templates("{{ messages[0].content }}").render(r), UserError);
  r.continue_final_message = "content";
  EXPECT_THROW(templates("{{ messages[0].content }}").render(r), UserError);
}

TEST(ChatTemplate, NormalizesMessages) {
  const ChatTemplates show = templates("{{ messages|tojson }}");
  EXPECT_EQ(show.render(request(R"([{"role": "user", "content": null, "tool_calls": null}])")).text,
            R"([{"role": "user"}])");
  EXPECT_EQ(show.render(request(R"([{"role": "a", "content": "x", "reasoning": "r"}])")).text,
            R"([{"thinking": "r", "role": "a", "content": "x", "reasoning": "r", "reasoning_content": "r"}])");
  EXPECT_EQ(show.render(request(R"([{"role": "a", "thinking": "t", "reasoning_content": "r"}])")).text,
            R"([{"thinking": "t", "role": "a", "reasoning_content": "r"}])");
  EXPECT_THROW(show.render(request("[]")), UserError);
  EXPECT_THROW(show.render(request("[1]")), UserError);
  EXPECT_THROW(show.render(request("{}")), UserError);
}

TEST(ChatTemplate, ToolsDocumentsVariables) {
  const ChatTemplates show = templates("{{ tools }}{{ documents }}{{ x }}{{ eos_token }}");
  ChatRequest r = request(kHello);
  EXPECT_EQ(show.render(r).text, "NoneNone</s>");
  r.tools = values(R"([{"name": "f"}])");
  r.documents = values(R"([{"text": "d"}])");
  r.variables = values(R"({"x": 12345678901234567890123, "eos_token": "!"})");
  EXPECT_EQ(show.render(r).text, "[{'name': 'f'}][{'text': 'd'}]12345678901234567890123!");
  r.tools = values("[1]");
  EXPECT_THROW(show.render(r), UserError);
  r.tools = Value::none();
  r.variables = values(R"({"messages": 1})");
  EXPECT_THROW(show.render(r), UserError);
}

TEST(ChatTemplate, Named) {
  ChatTemplates named;
  named.add("default", ChatTemplate("plain", "a"));
  named.add("tool_use", ChatTemplate("tools", "b"));
  ChatRequest r = request(kHello);
  EXPECT_EQ(named.render(r).text, "plain");
  r.tools = values("[]");
  EXPECT_EQ(named.render(r).text, "tools");
  r.template_name = "default";
  EXPECT_EQ(named.render(r).text, "plain");
  r.template_name = "rag";
  EXPECT_THROW(named.render(r), UserError);
  ChatTemplates no_default;
  no_default.add("rag", ChatTemplate("rag", "c"));
  EXPECT_THROW(no_default.render(request(kHello)), UserError);
  EXPECT_THROW(ChatTemplates().render(request(kHello)), UserError);
}

TEST(ChatTemplate, GenerationSpansCountCodePoints) {
  const ChatTemplates spans = templates(
      "{% for m in messages %}é{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
      "{% set x %}{% generation %}z{% endgeneration %}{% endset %}");
  const ChatText out = spans.render(request(R"([{"role": "a", "content": "日本"}, {"role": "a", "content": "x"}])"));
  EXPECT_EQ(out.text, "é日本éx");
  const std::vector<std::pair<size_t, size_t>> wanted = {{1, 3}, {4, 5}, {5, 6}};
  EXPECT_EQ(out.generation_spans, wanted);
}

TEST(ChatTemplate, AssistantMask) {
  const std::vector<std::pair<size_t, size_t>> offsets = {{0, 2}, {2, 4}, {4, 6}, {6, 6}, {6, 9}, {9, 12}};
  const std::vector<std::pair<size_t, size_t>> spans = {{3, 5}, {9, 10}};
  EXPECT_EQ(assistant_mask(offsets, spans), (std::vector<uint8_t>{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(assistant_mask(offsets, {}), std::vector<uint8_t>(6, 0));
}

TEST(ChatTemplate, Folder) {
  const TemporaryDirectory folder;
  const auto write = [&](const char* name, const char* text) {
    write_file_atomic(folder.path() / name, std::string_view(text));
  };
  EXPECT_TRUE(ChatTemplates::from_folder(folder.path()).empty());
  write("special_tokens_map.json",
        R"({"bos_token": "<x>", "pad_token": {"content": "<p>"}, "additional_special_tokens": ["a"]})");
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "image_token": "<i>", "unk_token": null,
        "chat_template": [{"name": "default", "template": "config{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ image_token }}"},
                          {"name": "rag", "template": "rag"}]})");
  ChatTemplates loaded = ChatTemplates::from_folder(folder.path());
  EXPECT_EQ(loaded.names(), (std::vector<std::string>{"default", "rag"}));
  EXPECT_EQ(loaded.render(request(kHello)).text, "config<s></s><p><i>");

  write("tokenizer_config.json", R"({"chat_template": "{{ nope"})");
  EXPECT_THROW(ChatTemplates::from_folder(folder.path()), TemplateError);
  write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_THROW(ChatTemplates::from_folder(folder.path()), DataError);

  write("tokenizer_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(ChatTemplates::from_folder(folder.path()).render(request(kHello)).text, "config");
  write("chat_template.jinja", "file\r\n");
  std::filesystem::create_directory(folder.path() / "additional_chat_templates");
  write("additional_chat_templates/tool_use.jinja", "tools");
  loaded = ChatTemplates::from_folder(folder.path());
  EXPECT_EQ(loaded.names(), (std::vector<std::string>{"default", "tool_use"}));
  EXPECT_EQ(loaded.render(request(kHello)).text, "file");
}

TEST(ChatTemplate, Gguf) {
  using Builder = formats::testing::GgufBuilder;
  Builder file;
  file.pair("tokenizer.chat_template",
            std::string("{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ messages[0].content }}"));
  file.pair("tokenizer.chat_templates", Builder::Array,
            Builder::array(Builder::String, std::vector<std::string>{"tool_use", "gone"}));
  file.pair("tokenizer.chat_template.tool_use", std::string("tools"));
  file.pair("tokenizer.ggml.tokens", Builder::Array,
            Builder::array(Builder::String, std::vector<std::string>{"<s>", "a", "</s>"}));
  file.pair("tokenizer.ggml.bos_token_id", 0u).pair("tokenizer.ggml.eos_token_id", 2u);
  const ChatTemplates loaded = ChatTemplates::from_gguf(*file.parse());
  EXPECT_EQ(loaded.names(), (std::vector<std::string>{"default", "tool_use"}));
  EXPECT_EQ(loaded.render(request(kHello)).text, "<s></s>Hello");
  file.pair("tokenizer.ggml.padding_token_id", 3u);
  EXPECT_THROW(ChatTemplates::from_gguf(*file.parse()), DataError);
}

}  // namespace
}  // namespace hierarchos
