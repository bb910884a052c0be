#include <unistd.h>

#include <csignal>

#include "base/os/terminal.h"

namespace hierarchos {
namespace {

volatile std::sig_atomic_t pending = 0;
struct sigaction before;

void remember(int signal) {
  if (pending) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  pending = 1;
}

}  // namespace

bool is_terminal(StandardStream stream) {
  return isatty(stream == StandardStream::In    ? STDIN_FILENO
                : stream == StandardStream::Out ? STDOUT_FILENO
                                                : STDERR_FILENO) == 1;
}

InterruptGuard::InterruptGuard() {
  pending = 0;
  struct sigaction action {};
  action.sa_handler = remember;  // without SA_RESTART: a read that waits for a line is interrupted too
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before, nullptr); }

bool InterruptGuard::interrupted() const { return pending != 0; }

bool InterruptGuard::take() {
  const bool was = pending != 0;
  pending = 0;
  return was;
}

}  // namespace hierarchos
