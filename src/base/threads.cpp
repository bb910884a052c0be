#include "base/threads.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/os/cpu.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace hierarchos {
namespace {

constexpr int kMaxThreads = 1024;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Spins until done() or until the time is over; returns done(). Gaps between two kernels of a decode step are tens of
// microseconds; longer ones are worth sleeping through. No yielding: on a busy
// machine it gives away a whole time slice.
template <typename Done>
bool spin(Done done) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLimit = std::chrono::microseconds(200);
  const auto begin = Clock::now();
  for (;;) {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      relax();
    }
    if (Clock::now() - begin > kLimit) return done();
  }
}

// The loops that this thread is inside of, innermost first.
struct Frame {
  const ThreadPool* pool;
  int worker;
  const Frame* outer;
};
thread_local const Frame* innermost = nullptr;

class FrameScope {
 public:
  FrameScope(const ThreadPool* pool, int worker) : frame_{pool, worker, innermost} { innermost = &frame_; }
  ~FrameScope() { innermost = frame_.outer; }
  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;

 private:
  Frame frame_;
};

// State of the job in one word, which is also what threads sleep on: how many workers are inside, whether more may come
// in, and the job's number. A worker that wakes late finds the door closed, so the caller never waits for the scheduler:
// only for workers that have begun an index.
constexpr uint32_t kInside = 0xFFF;  // count of workers inside (the caller is not counted)
constexpr uint32_t kOpen = 0x1000;
constexpr uint32_t kJob = 0x2000;  // added for each job; wraps
constexpr uint32_t kJobMask = ~(kInside | kOpen);
static_assert(kMaxThreads <= kInside);

}  // namespace

struct ThreadPool::Impl {
  explicit Impl(const ThreadPool* owner) : pool(owner) {}

  const ThreadPool* pool;
  std::vector<std::thread> threads;
  std::mutex callers;  // one loop at a time

  // The job: written while the door is closed and nobody is inside.
  const function_ref<void(int64_t, int)>* body = nullptr;
  int64_t count = 0;
  int64_t chunk = 1;
  std::exception_ptr error;
  std::atomic_flag failed;

  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<uint32_t> state{0};
  std::atomic<int> sleeping{0};               // workers
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> stop{false};

  void work(int worker) {
    const FrameScope scope(pool, worker);
    try {
      for (;;) {
        const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
        if (begin >= count) return;
        const int64_t end = chunk < count - begin ? begin + chunk : count;
        for (int64_t i = begin; i < end; ++i) {
          if (i != begin && failed.test(std::memory_order_relaxed)) return;
          (*body)(i, worker);
        }
      }
    } catch (...) {
      if (!failed.test_and_set()) error = std::current_exception();  // published by leaving
      next.store(count, std::memory_order_relaxed);
    }
  }

  void loop(int worker) {
    uint32_t seen = 0;  // the job last taken part in
    for (;;) {
      const auto news = [&] {
        const uint32_t s = state.load(std::memory_order_acquire);
        return ((s & kOpen) != 0 && (s & kJobMask) != seen) || stop.load(std::memory_order_relaxed);
      };
      while (!spin(news)) {
        sleeping.fetch_add(1);
        // Sequentially consistent with the caller's store to `state` and load of `sleeping`: one of us sees the other.
        const uint32_t s = state.load();
        if (!news()) state.wait(s);
        sleeping.fetch_sub(1);
      }
      if (stop.load()) return;
      uint32_t s = state.load(std::memory_order_relaxed);
      while ((s & kOpen) != 0 && !state.compare_exchange_weak(s, s + 1, std::memory_order_acquire)) {
      }
      if ((s & kOpen) == 0) continue;
      seen = s & kJobMask;
      work(worker);
      const uint32_t left = state.fetch_sub(1) - 1;
      if ((left & (kInside | kOpen)) == 0 && caller_sleeps.load()) state.notify_all();
    }
  }

  void shut_down() {
    stop.store(true);
    state.fetch_add(kJob);
    state.notify_all();
    for (std::thread& t : threads) t.join();
  }
};

ThreadPool::ThreadPool(int threads) : size_(threads) {
  if (threads < 1 || threads > kMaxThreads)
    throw UserError("number of threads is {}: give 1 to {}", threads, kMaxThreads);
  if (size_ == 1) return;
  impl_ = std::make_unique<Impl>(this);
  try {
    for (int w = 1; w < size_; ++w) impl_->threads.emplace_back([impl = impl_.get(), w] { impl->loop(w); });
  } catch (const std::system_error& e) {
    const size_t made = impl_->threads.size() + 1;
    impl_->shut_down();
    throw Error(fmt::format("cannot start thread {} of {}: {}; use fewer threads", made + 1, threads, e.what()));
  }
}

ThreadPool::~ThreadPool() {
  if (impl_) impl_->shut_down();
}

void ThreadPool::parallel_for(int64_t count, function_ref<void(int64_t, int)> body) {
  if (count <= 0) return;
  for (const Frame* f = innermost; f != nullptr; f = f->outer) {
    if (f->pool != this) continue;
    for (int64_t i = 0; i < count; ++i) body(i, f->worker);
    return;
  }
  if (!impl_) {
    for (int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }

  Impl& p = *impl_;
  const std::lock_guard one(p.callers);
  if (count == 1) {
    const FrameScope scope(this, 0);
    body(0, 0);
    return;
  }
  p.body = &body;
  p.count = count;
  // Large counts of small bodies would spend their time on the counter.
  p.chunk = count / (int64_t{size_} * 16) > 1 ? count / (int64_t{size_} * 16) : 1;
  p.error = nullptr;
  p.failed.clear(std::memory_order_relaxed);
  p.next.store(0, std::memory_order_relaxed);
  p.state.store((p.state.load(std::memory_order_relaxed) & kJobMask) + kJob + kOpen);
  if (p.sleeping.load() > 0) p.state.notify_all();

  p.work(0);

  p.state.fetch_and(~kOpen);
  const auto alone = [&] { return (p.state.load(std::memory_order_acquire) & kInside) == 0; };
  if (!spin(alone)) {
    p.caller_sleeps.store(true);
    for (uint32_t s = p.state.load(); (s & kInside) != 0; s = p.state.load()) p.state.wait(s);
    p.caller_sleeps.store(false);
  }
  if (p.failed.test()) std::rethrow_exception(std::exchange(p.error, nullptr));
}

namespace {

std::mutex default_mutex;
int default_threads = 0;
std::unique_ptr<ThreadPool> default_instance;
std::atomic<ThreadPool*> default_made{nullptr};

}  // namespace

void set_default_threads(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    throw UserError("number of threads is {}: give 1 to {}, or 0 for one a core", threads, kMaxThreads);
  const std::lock_guard lock(default_mutex);
  const int wanted = threads > 0 ? threads : usable_cores();
  if (default_instance && default_instance->size() != wanted)
    throw UserError("cannot use {} threads: {} are running already; set the number before any work", wanted,
                    default_instance->size());
  default_threads = threads;
}

ThreadPool& default_pool() {
  if (ThreadPool* const made = default_made.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(default_mutex);
  if (!default_instance) {
    default_instance = std::make_unique<ThreadPool>(default_threads > 0 ? default_threads : usable_cores());
    default_made.store(default_instance.get(), std::memory_order_release);
  }
  return *default_instance;
}

}  // namespace hierarchos
