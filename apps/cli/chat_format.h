// From messages to the text that a model was trained to answer.
#pragma once

#include <string>
#include <vector>

#include "runner.h"
#include "template/chat_template.h"

namespace hierarchos::cli {

struct Message {
  std::string role, content;  // "system", "user", "assistant"
};

// The package's chat templates, or one from a file. Throws UserError where there is none.
class ChatFormat {
 public:
  ChatFormat(const Runner& runner, const std::string& template_file);
  // The conversation, and the beginning of the answer.
  std::string render(const std::vector<Message>& messages) const;

 private:
  ChatTemplates templates_;
};

}  // namespace hierarchos::cli
