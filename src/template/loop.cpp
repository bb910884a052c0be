#include "template/loop.h"

namespace hierarchos::jinja {

Loop::Loop(const Value& iterable, std::shared_ptr<Iterator> items, Recurse recurse, int depth0)
    : Tracked(192), items_(std::move(items)), recurse_(std::move(recurse)), depth0_(depth0) {
  length_ = jinja::length(iterable);
}

std::optional<Value> Loop::pull() {
  if (!all_buffered_) return items_->next();
  if (next_buffered_ == buffered_.size()) return std::nullopt;
  return buffered_[next_buffered_++];
}

const std::optional<Value>& Loop::peek() {
  if (!peeked_) {
    after_ = pull();
    peeked_ = after_.has_value();
  }
  return after_;
}

bool Loop::advance() {
  std::optional<Value> item = peeked_ ? std::move(after_) : pull();
  peeked_ = false;
  after_.reset();
  if (!item) return false;
  ++index0_;
  before_ = std::move(current_);
  current_ = std::move(*item);
  return true;
}

int64_t Loop::length() {
  if (!length_) {
    while (std::optional<Value> item = items_->next()) buffered_.push_back(std::move(*item));
    all_buffered_ = true;
    length_ = static_cast<int64_t>(buffered_.size()) + index0_ + 1 + (peeked_ ? 1 : 0);
  }
  return *length_;
}

Value Loop::attribute(std::string_view name) {
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(!peek());
  if (name == "length") return Value::integer(length());
  if (name == "revindex") return Value::integer(length() - index0_);
  if (name == "revindex0") return Value::integer(length() - index0_ - 1);
  if (name == "depth") return Value::integer(depth0_ + 1);
  if (name == "depth0") return Value::integer(depth0_);
  if (name == "previtem") return index0_ == 0 ? Value::undefined("there is no previous item") : before_;
  if (name == "nextitem") return peek() ? *peek() : Value::undefined("there is no next item");
  return {};
}

Value Loop::cycle(const Arguments& arguments) const {
  if (!arguments.named.empty()) type_error("loop.cycle() got an unexpected keyword argument");
  if (arguments.positional.empty()) type_error("no items for cycling given");
  return arguments.positional[static_cast<size_t>(index0_) % arguments.positional.size()];
}

Value Loop::changed(const Arguments& arguments) {
  if (!arguments.named.empty()) type_error("loop.changed() got an unexpected keyword argument");
  bool same = last_changed_ && last_changed_->size() == arguments.positional.size();
  for (size_t i = 0; same && i < arguments.positional.size(); ++i)
    same = SameKey()((*last_changed_)[i], arguments.positional[i]);
  if (!same) last_changed_ = arguments.positional;
  return Value::boolean(!same);
}

Value Loop::recurse(Interpreter& interpreter, const Value& iterable) const {
  if (!recurse_) type_error("The loop must have the 'recursive' marker to be called recursively.");
  return recurse_(interpreter, iterable, depth0_ + 1);
}

std::string Loop::repr() { return fmt::format("<LoopContext {}/{}>", index0_ + 1, length()); }

void Loop::clear() {
  items_.reset();
  buffered_.clear();
  current_ = before_ = Value();
  after_.reset();
  last_changed_.reset();
  recurse_ = nullptr;
}

}  // namespace hierarchos::jinja
