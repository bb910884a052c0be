#include "tokenizer/encoding.h"

#include <algorithm>

#include "base/error.h"

namespace hierarchos::tokenizers {
namespace {

constexpr size_t kMostOverflow = 100000;  // windows: combinations of two sequences multiply
constexpr size_t kMostPadding = size_t{1} << 28;

template <typename T>
void extend(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

template <typename T>
std::vector<T> part(const std::vector<T>& from, size_t begin, size_t end) {
  return {from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

std::vector<int32_t> Encoding::sequence_ids() const {
  std::vector<int32_t> out(size(), -1);
  const size_t count = ranges_.empty() ? 1 : ranges_.size();
  for (size_t sequence = 0; sequence < count; ++sequence) {
    Range range{sequence, 0, size()};
    for (const Range& r : ranges_)
      if (r.sequence == sequence) range = r;
    for (size_t i = range.begin; i < std::min(range.end, size()); ++i) out[i] = static_cast<int32_t>(sequence);
  }
  return out;
}

void Encoding::set_sequence(size_t sequence) {
  for (Range& range : ranges_)
    if (range.sequence == sequence) return static_cast<void>(range = {sequence, 0, size()});
  ranges_.push_back({sequence, 0, size()});
}

void Encoding::copy_tokens(const Encoding& other) {
  const size_t before = size();
  for (const Range& range : other.ranges_) {
    const Range moved{range.sequence, before + range.begin, before + range.end};
    const auto same =
        std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.sequence == range.sequence; });
    if (same != ranges_.end())
      *same = moved;
    else
      ranges_.push_back(moved);
  }
  extend(ids, other.ids);
  extend(type_ids, other.type_ids);
  extend(offsets, other.offsets);
  extend(special_mask, other.special_mask);
  extend(attention_mask, other.attention_mask);
  extend(spaces, other.spaces);
}

void Encoding::append(Encoding other) {
  std::vector<Encoding> more;
  if (overflowing.size() * (1 + other.overflowing.size()) + other.overflowing.size() > kMostOverflow)
    throw UserError("The texts are cut into more than {} windows: raise max_length or lower the stride", kMostOverflow);
  for (const Encoding& mine : overflowing) {
    more.push_back(mine);
    more.back().append(other);
    for (const Encoding& theirs : other.overflowing) {
      more.push_back(mine);
      more.back().append(theirs);
    }
  }
  for (const Encoding& theirs : other.overflowing) {
    more.push_back(*this);
    more.back().append(theirs);
  }
  if (size() == 0 && ranges_.empty()) {
    other.overflowing = std::move(more);
    *this = std::move(other);
    return;
  }
  copy_tokens(other);
  overflowing = std::move(more);
}

Encoding Encoding::window(size_t begin, size_t end) const {
  Encoding out;
  out.ids = part(ids, begin, end);
  out.type_ids = part(type_ids, begin, end);
  out.has_offsets = has_offsets;
  out.has_spaces = has_spaces;
  if (has_offsets) out.offsets = part(offsets, begin, end);
  out.special_mask = part(special_mask, begin, end);
  out.attention_mask = part(attention_mask, begin, end);
  if (has_spaces) out.spaces = part(spaces, begin, end);
  return out;
}

void Encoding::truncate(size_t length, size_t stride, bool left) {
  const size_t n = size();
  if (length >= n) return;
  if (length == 0) {
    Encoding whole = std::move(*this);
    *this = {};
    has_offsets = whole.has_offsets;
    has_spaces = whole.has_spaces;
    overflowing.push_back(std::move(whole));
    return;
  }
  if (stride >= length)
    throw UserError("A stride of {} does not fit a length of {} tokens (special ones not counted)", stride, length);
  const size_t step = length - stride;
  if (n / step > kMostOverflow)
    throw UserError("A text is cut into more than {} windows: raise max_length or lower the stride", kMostOverflow);
  std::vector<Encoding> windows;
  if (left) {
    for (size_t end = n;; end -= step) {
      const size_t begin = end > length ? end - length : 0;
      windows.push_back(window(begin, end));
      if (begin == 0 || end <= step) break;
    }
  } else {
    for (size_t begin = 0; begin < n; begin += step) {
      const size_t end = std::min(begin + length, n);
      windows.push_back(window(begin, end));
      if (end == n) break;
    }
  }
  *this = std::move(windows[0]);
  overflowing.assign(std::make_move_iterator(windows.begin() + 1), std::make_move_iterator(windows.end()));
}

void Encoding::pad(size_t length, const Padding& padding) {
  for (Encoding& window : overflowing) window.pad(length, padding);
  if (size() >= length) return;
  if (length > kMostPadding) throw UserError("Padding to {} tokens: the limit is {}", length, kMostPadding);
  const size_t count = length - size();
  const auto fill = [&]<typename T>(std::vector<T>& values, T value) {
    values.insert(padding.left ? values.begin() : values.end(), count, value);
  };
  if (has_offsets) fill(offsets, Offsets{});
  if (has_spaces) fill(spaces, Space{});
  fill(ids, padding.id);
  fill(type_ids, padding.type_id);
  fill(special_mask, uint8_t{1});
  fill(attention_mask, uint8_t{0});
  if (padding.left)
    for (Range& range : ranges_) range.begin += count, range.end += count;
}

Truncation Truncation::read(Json value, const Place& place) {
  const Object o(value, place);
  Truncation out;
  out.max_length = o.size("max_length");
  out.stride = o.size("stride");
  const std::string strategy = o.text("strategy");
  if (strategy == "OnlyFirst")
    out.strategy = OnlyFirst;
  else if (strategy == "OnlySecond")
    out.strategy = OnlySecond;
  else if (strategy != "LongestFirst")
    throw UnsupportedError("{}: the strategy \"{}\" is not supported", place.name, strategy);
  if (!o.find("direction")) return out;
  const std::string direction = o.text("direction");
  if (direction != "Left" && direction != "Right")
    throw UnsupportedError("{}: the direction \"{}\" is not supported", place.name, direction);
  out.left = direction == "Left";
  return out;
}

Padding Padding::read(Json value, const Place& place) {
  const Object o(value, place);
  Padding out;
  std::string_view strategy;
  if (o.at("strategy").get_string().get(strategy) == simdjson::SUCCESS) {
    if (strategy != "BatchLongest")
      throw UnsupportedError("{}: the strategy \"{}\" is not supported", place.name, strategy);
  } else {
    out.fixed = Object(o.at("strategy"), o.inside("strategy")).size("Fixed");
  }
  const std::string direction = o.text("direction");
  if (direction != "Left" && direction != "Right")
    throw UnsupportedError("{}: the direction \"{}\" is not supported", place.name, direction);
  out.left = direction == "Left";
  if (o.has("pad_to_multiple_of")) out.multiple_of = o.size("pad_to_multiple_of");
  out.id = o.id("pad_id");
  out.type_id = o.id("pad_type_id");
  out.token = o.text("pad_token");
  return out;
}

void truncate(Encoding& first, Encoding* second, const Truncation& t) {
  if (t.max_length == 0) {
    first.truncate(0, t.stride, t.left);
    if (second) second->truncate(0, t.stride, t.left);
    return;
  }
  const size_t total = first.size() + (second ? second->size() : 0);
  if (total <= t.max_length) return;
  const size_t excess = total - t.max_length;
  if (t.strategy == Truncation::LongestFirst) {
    if (!second) return first.truncate(total - excess, t.stride, t.left);
    // The longer one is cut to what the shorter leaves, or both to halves.
    size_t shorter = std::min(first.size(), second->size()), longer;
    longer = shorter > t.max_length ? shorter : std::max(shorter, t.max_length - shorter);
    if (shorter + longer > t.max_length) {
      shorter = t.max_length / 2;
      longer = shorter + t.max_length % 2;
    }
    const bool first_is_longer = first.size() > second->size();
    first.truncate(first_is_longer ? longer : shorter, t.stride, t.left);
    second->truncate(first_is_longer ? shorter : longer, t.stride, t.left);
    return;
  }
  Encoding* target = t.strategy == Truncation::OnlyFirst ? &first : second;
  if (!target) throw UserError("The tokenizer cuts the second of two texts, and there is only one");
  if (target->size() <= excess)
    throw UserError("The text that may be cut has {} tokens, and {} must go", target->size(), excess);
  target->truncate(target->size() - excess, t.stride, t.left);
}

void pad(std::vector<Encoding>& batch, const Padding& padding) {
  size_t length = padding.fixed.value_or(0);
  if (!padding.fixed)
    for (const Encoding& encoding : batch) length = std::max(length, encoding.size());
  if (padding.multiple_of > 0 && length % padding.multiple_of > 0) {
    if (padding.multiple_of > kMostPadding)
      throw UserError("Padding to a multiple of {}: the limit is {}", padding.multiple_of, kMostPadding);
    length += padding.multiple_of - length % padding.multiple_of;
  }
  for (Encoding& encoding : batch) encoding.pad(length, padding);
}

}  // namespace hierarchos::tokenizers
