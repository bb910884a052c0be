#include "generate/stop_strings.h"

#include <algorithm>

namespace hierarchos::generate {

std::string TextStream::push(int32_t id) { return release(stream_.push(id)); }

std::string TextStream::finish() {
  std::string text = release(stream_.finish());
  if (stopped_) return text;
  text += held_;
  held_.clear();
  return text;
}

std::string TextStream::release(std::string text) {
  if (stopped_) return {};
  held_ += text;
  size_t end = std::string::npos;
  for (const std::string& stop : stop_strings_) end = std::min(end, held_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    std::string out = held_.substr(0, end);
    held_.clear();
    return out;
  }
  // The longest end that a stop string begins with stays.
  size_t keep = 0;
  for (const std::string& stop : stop_strings_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (held_.ends_with(std::string_view(stop).substr(0, n))) keep = n;
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return out;
}

}  // namespace hierarchos::generate
