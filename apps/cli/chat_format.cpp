#include "chat_format.h"

namespace hierarchos::cli {

ChatFormat::ChatFormat(const Runner&, const std::string&) {
  throw UnsupportedError(
      "this build has no chat templates yet: put the model's own marks around the text and use `hierarchos generate`");
}

std::string ChatFormat::render(const std::vector<Message>&) const { return source_; }

}  // namespace hierarchos::cli
