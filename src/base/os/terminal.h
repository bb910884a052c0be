// The terminal and its keys.
#pragma once

namespace hierarchos {

enum class StandardStream { In, Out, Error };
// Is it a terminal, where somebody reads, rather than a pipe or a file?
bool is_terminal(StandardStream stream);

// While one of these lives, an interrupt (Ctrl-C) does not end the process but is remembered. A second one before the
// first was taken ends it as usual. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
  bool take();  // the same, and forgets it
};

}  // namespace hierarchos
