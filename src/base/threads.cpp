#include "base/threads.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace hierarchos {
namespace {

thread_local bool inside_body = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Long enough to bridge the gap between two kernels of a decode step, short enough not to burn an idle core.
constexpr int kSpins = 20000;

}  // namespace

struct ThreadPool::Impl {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> generation{0};  // of the job; a change starts the workers
  std::atomic<bool> stop{false};
  std::atomic<int> sleeping{0};

  // The job. Written before `generation` changes, read after.
  function_ref<void(int64_t, int)>* body = nullptr;
  int64_t count = 0;
  std::atomic<int64_t> next{0};
  std::atomic<int> busy{0};
  std::exception_ptr error;
  std::mutex error_mutex;
  std::mutex callers;  // one parallel_for at a time

  void work(int worker) {
    inside_body = true;
    try {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) (*body)(i, worker);
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
      next.store(count, std::memory_order_relaxed);
    }
    inside_body = false;
  }

  void loop(int worker) {
    uint64_t seen = 0;
    while (true) {
      int spins = 0;
      while (generation.load(std::memory_order_acquire) == seen && !stop.load(std::memory_order_relaxed)) {
        if (++spins < kSpins) {
          relax();
          continue;
        }
        std::unique_lock lock(mutex);
        sleeping.fetch_add(1);
        wake.wait(lock, [&] { return generation.load() != seen || stop.load(); });
        sleeping.fetch_sub(1);
      }
      if (stop.load()) return;
      seen = generation.load(std::memory_order_acquire);
      work(worker);
      busy.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
};

ThreadPool::ThreadPool(int threads) : size_(threads < 1 ? 1 : threads) {
  if (size_ == 1) return;
  impl_ = std::make_unique<Impl>();
  for (int w = 1; w < size_; ++w) impl_->threads.emplace_back([this, w] { impl_->loop(w); });
}

ThreadPool::~ThreadPool() {
  if (!impl_) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wake.notify_all();
  for (std::thread& t : impl_->threads) t.join();
}

void ThreadPool::parallel_for(int64_t count, function_ref<void(int64_t, int)> body) {
  if (count <= 0) return;
  if (!impl_ || count == 1 || inside_body) {
    for (int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  Impl& p = *impl_;
  const std::lock_guard one(p.callers);
  p.body = &body;
  p.count = count;
  p.error = nullptr;
  p.next.store(0, std::memory_order_relaxed);
  p.busy.store(size_ - 1, std::memory_order_relaxed);
  p.generation.fetch_add(1, std::memory_order_seq_cst);
  if (p.sleeping.load(std::memory_order_seq_cst) > 0) {
    const std::lock_guard lock(p.mutex);
    p.wake.notify_all();
  }
  p.work(0);
  for (int spins = 0; p.busy.load(std::memory_order_acquire) > 0;) {
    if (++spins < kSpins)
      relax();
    else
      std::this_thread::yield();
  }
  if (p.error) std::rethrow_exception(p.error);
}

namespace {

int wanted_threads = 0;

// Cores, not their hardware threads: the second thread of a core adds nothing to code that fills its vector units.
int physical_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return static_cast<int>(std::thread::hardware_concurrency());
  std::set<std::string> cores;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (!CPU_ISSET(c, &set)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(c) + "/topology/thread_siblings_list");
    std::string siblings;
    if (!(file >> siblings)) siblings = std::to_string(c);
    cores.insert(siblings);
  }
  return cores.empty() ? 1 : static_cast<int>(cores.size());
}

}  // namespace

void set_default_threads(int threads) { wanted_threads = threads; }

ThreadPool& default_pool() {
  static ThreadPool pool(wanted_threads > 0 ? wanted_threads : physical_cores());
  return pool;
}

}  // namespace hierarchos
