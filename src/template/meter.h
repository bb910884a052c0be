// What a template may use. Everything that a rendering makes is counted, so that no template can hang or fill the
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hierarchos::jinja {

struct Limits {
  int64_t steps = 1'000'000;     // expressions, statements and rounds of loops; long texts and lists count more
  size_t text_bytes = 16 << 20;  // of the output, and of any one text
  size_t live_bytes = size_t{256} << 20;  // of all values together
  int depth = 200;                        // of calls, of nested values, of the source
};

// One a rendering. Values made while it is current are charged to it, and give back what they held when they go.
class Meter {
 public:
  explicit Meter(const Limits& limits) : limits_(limits), steps_left_(limits.steps), previous_(current_) {
    current_ = this;
  }
  ~Meter() { current_ = previous_; }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  static Meter* current() { return current_; }  // of this thread; null outside a rendering

  const Limits& limits() const { return limits_; }
  void step(int64_t count = 1) {
    if ((steps_left_ -= count) < 0) too_many_steps();
  }
  void allocate(size_t bytes);  // counts as steps, too
  void release(size_t bytes) { live_ -= bytes; }

 private:
  [[noreturn]] void too_many_steps() const;

  Limits limits_;
  int64_t steps_left_;
  size_t live_ = 0;
  Meter* previous_;
  static thread_local Meter* current_;
};

// Throws if a text of so many bytes may not be made, before it is.
void check_text_size(size_t bytes);
// Work in proportion to a number of bytes or elements that makes no value: comparing, searching.
void charge(size_t bytes);

}  // namespace hierarchos::jinja
