#include "chat_format.h"

#include "base/os/file.h"

namespace hierarchos::cli {

ChatFormat::ChatFormat(const Runner& runner, const std::string& template_file)
    : templates_(ChatTemplates::from_package(*formats::Package::open(runner.path))) {
  if (!template_file.empty()) {
    ChatTemplates given = ChatTemplates::single(read_text_file(template_file), template_file);
    for (const auto& [name, text] : templates_.special_tokens()) given.set_special_token(name, text);
    templates_ = std::move(given);
  }
  if (templates_.empty())
    throw UserError(
        "{}: there is no chat template, so the model may not be made for conversations; give one by --chat-template, "
        "or "
        "use `hierarchos generate`",
        runner.path);
}

std::string ChatFormat::render(const std::vector<Message>& messages) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Message& m : messages) list.push_back({{"role", m.role}, {"content", m.content}});
  ChatRequest request;
  request.messages = jinja::json_value(list);
  request.add_generation_prompt = true;
  return templates_.render(request).text;
}

}  // namespace hierarchos::cli
