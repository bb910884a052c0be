// The variable `loop` of a for statement.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "template/value.h"

namespace hierarchos::jinja {

class Loop : public Tracked {
 public:
  // Renders the body of a recursive loop over other values, one level deeper; empty where the loop is not recursive.
  using Recurse = std::function<Value(Interpreter&, const Value& iterable, int depth0)>;
  Loop(const Value& iterable, std::shared_ptr<Iterator> items, Recurse recurse, int depth0);

  bool advance();  // to the next item; false at the end
  const Value& current() const { return current_; }
  int64_t length();  // of an iterator: reads it to its end
  // An attribute's value; missing when there is none of this name.
  Value attribute(std::string_view name);
  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);
  Value recurse(Interpreter& interpreter, const Value& iterable) const;
  std::string repr();
  void clear() override;

 private:
  std::optional<Value> pull();
  const std::optional<Value>& peek();

  std::shared_ptr<Iterator> items_;
  std::vector<Value> buffered_;  // what was read to know the length
  size_t next_buffered_ = 0;
  bool all_buffered_ = false;
  std::optional<int64_t> length_;
  Value current_, before_;
  std::optional<Value> after_;
  bool peeked_ = false;
  std::optional<Values> last_changed_;
  Recurse recurse_;
  int64_t index0_ = -1;
  int depth0_;
};

}  // namespace hierarchos::jinja
