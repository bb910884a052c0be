// How CPU kernels hand out their tasks.
#pragma once

#include "base/threads.h"

namespace hierarchos::ops {

// Multiplications that are done before a second thread has woken up.
inline constexpr double kWorkOfOneThread = 1 << 16;

// Calls body(i) for every task, on this thread where the whole work (in multiplications) is small.
template <typename Body>
void for_tasks(ThreadPool& pool, double work, int64_t count, Body&& body) {
  if (work <= kWorkOfOneThread) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  pool.parallel_for(count, [&](int64_t i, int) { body(i); });
}

}  // namespace hierarchos::ops
