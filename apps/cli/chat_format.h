// From messages to the text that a model was trained to answer.
#pragma once

#include <string>
#include <vector>

#include "runner.h"

namespace hierarchos::cli {

struct Message {
  std::string role, content;  // "system", "user", "assistant"
};

// The package's chat template. Throws UnsupportedError where there is none, or it cannot be honoured.
class ChatFormat {
 public:
  ChatFormat(const Runner& runner, const std::string& template_file);
  // The conversation, and the beginning of the answer.
  std::string render(const std::vector<Message>& messages) const;

 private:
  std::string source_;
};

}  // namespace hierarchos::cli
