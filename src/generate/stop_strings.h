// Text of a sequence as it grows, up to a stop string.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace hierarchos::generate {

class TextStream {
 public:
  // The tokenizer must outlive it. Special tokens have no text.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings)
      : stream_(tokenizer.stream()), stop_strings_(std::move(stop_strings)) {}

  // What is certain by now: whole characters, without what may be the beginning of a stop string. A stop string ends
  // the text; it is not part of it.
  std::string push(int32_t id);
  std::string finish();  // the rest
  bool stopped() const { return stopped_; }

 private:
  std::string release(std::string text);
  Tokenizer::Stream stream_;
  std::vector<std::string> stop_strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace hierarchos::generate
