// One pool of threads for the whole program.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace hierarchos {

class ThreadPool {
 public:
  // `threads` workers, the caller included; 1 never creates a thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }
  // Calls body(index, worker) once for each index in [0, count). Which worker takes which index is not fixed: results must
  // not depend on it. The caller takes part. An exception of a body is rethrown here. Inside a body it runs inline.
  void parallel_for(int64_t count, function_ref<void(int64_t index, int worker)> body);

 private:
  struct Impl;
  int size_;
  std::unique_ptr<Impl> impl_;
};

// The program's pool: as many threads as set_default_threads said before its first use, else the physical cores that this
// process may run on.
ThreadPool& default_pool();
void set_default_threads(int threads);

}  // namespace hierarchos
