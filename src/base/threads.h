// One pool of threads for the whole program.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace hierarchos {

// Threads that wait for work spin for about 0.2 ms after a loop, so that loops called back to back start within a
// microsecond or so, and then sleep.
class ThreadPool {
 public:
  // `threads` workers, the caller included; 1 never creates a thread. UserError unless 1 ≤ threads ≤ 1024.
  explicit ThreadPool(int threads);
  ~ThreadPool();  // no loop may be running
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls body(index, worker) once for each index in [0, count). Which worker takes which index is not fixed: results must
  // not depend on it. `worker` (0 to size() - 1) is for scratch memory: no two calls run at once with the same.
  // The caller takes part. If a body throws, indices not begun are skipped and the first exception is rethrown here.
  // Inside a body, a loop on the same pool runs inline, with the body's worker. Callers on several threads take turns.
  // A loop on another pool may stand inside a body if no body of that pool uses this one.
  void parallel_for(int64_t count, function_ref<void(int64_t index, int worker)> body);

 private:
  struct Impl;
  int size_;
  std::unique_ptr<Impl> impl_;
};

// The program's pool, made at its first use: as many threads as set_default_threads said, else usable_cores()
// (base/os/cpu.h).
ThreadPool& default_pool();

// 0: as many as usable_cores(). UserError for other numbers outside 1 to 1024, and if the pool exists already with
// another number of threads.
void set_default_threads(int threads);

}  // namespace hierarchos
