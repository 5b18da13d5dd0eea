#pragma once

// Mutexes that clang's -Wthread-safety understands (libstdc++'s carry no annotations), with lock
// ranks that debug builds check: a thread takes locks in rising rank only, so that no cycle of
// waiting threads can form. See fs/README.md "Locks" for who holds what.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define MEMOIRFS_TSA(x) __attribute__((x))
#else
#define MEMOIRFS_TSA(x)
#endif

#define CAPABILITY(x) MEMOIRFS_TSA(capability(x))
#define SCOPED_CAPABILITY MEMOIRFS_TSA(scoped_lockable)
#define GUARDED_BY(x) MEMOIRFS_TSA(guarded_by(x))
#define REQUIRES(...) MEMOIRFS_TSA(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) MEMOIRFS_TSA(requires_shared_capability(__VA_ARGS__))
#define ACQUIRE(...) MEMOIRFS_TSA(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) MEMOIRFS_TSA(acquire_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) MEMOIRFS_TSA(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) MEMOIRFS_TSA(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) MEMOIRFS_TSA(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) MEMOIRFS_TSA(release_generic_capability(__VA_ARGS__))
#define EXCLUDES(...) MEMOIRFS_TSA(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS MEMOIRFS_TSA(no_thread_safety_analysis)

namespace memoirfs {

// Taken in rising order. Two locks of one rank are never held together.
enum class LockRank : uint8_t {
  kSession = 1,      // the table of mounts and the life of a daemon
  kFileCommit = 2,   // one commit of one file at a time
  kFileContent = 3,  // a file's buffer: shared for reading, exclusive for writing
  kCheckpoint = 4,   // one checkpoint or sealing at a time
  kStreams = 5,      // which streams there are
  kStream = 6,       // one change of a stream's namespace and chain at a time
  kCommit = 7,       // appending to the journal and showing it in the index, in one order
  kJournalSync = 8,  // who is the leader of the barrier
  kJournalAppend = 9,
  kOverlay = 10,  // an overlay's tables and files, over the files of its base
  kLeaf = 11,     // tables, caches, queues: nothing is called with one held
};

namespace lock_rank_internal {
#ifndef NDEBUG
void Acquired(LockRank rank);  // aborts when a lock of this or a higher rank is held
void Released(LockRank rank);
#else
inline void Acquired(LockRank) {}
inline void Released(LockRank) {}
#endif
}  // namespace lock_rank_internal

class CAPABILITY("mutex") Mutex {
 public:
  explicit Mutex(LockRank rank = LockRank::kLeaf) : rank_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() {
    lock_rank_internal::Acquired(rank_);
    mutex_.lock();
  }
  bool try_lock() TRY_ACQUIRE(true) {
    if (!mutex_.try_lock()) return false;
    lock_rank_internal::Acquired(rank_);
    return true;
  }
  void unlock() RELEASE() {
    mutex_.unlock();
    lock_rank_internal::Released(rank_);
  }

 private:
  std::mutex mutex_;
  const LockRank rank_;
};

class CAPABILITY("mutex") SharedMutex {
 public:
  explicit SharedMutex(LockRank rank = LockRank::kLeaf) : rank_(rank) {}
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() ACQUIRE() {
    lock_rank_internal::Acquired(rank_);
    mutex_.lock();
  }
  void unlock() RELEASE() {
    mutex_.unlock();
    lock_rank_internal::Released(rank_);
  }
  void lock_shared() ACQUIRE_SHARED() {
    lock_rank_internal::Acquired(rank_);
    mutex_.lock_shared();
  }
  void unlock_shared() RELEASE_SHARED() {
    mutex_.unlock_shared();
    lock_rank_internal::Released(rank_);
  }

 private:
  std::shared_mutex mutex_;
  const LockRank rank_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReaderLock() RELEASE_GENERIC() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// A condition variable for Mutex. Wait in a loop that checks the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) { cv_.wait(mutex); }
  // False when the time ran out.
  template <typename Rep, typename Period>
  bool WaitFor(Mutex& mutex, std::chrono::duration<Rep, Period> time) REQUIRES(mutex) {
    return cv_.wait_for(mutex, time) == std::cv_status::no_timeout;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable_any cv_;
};

}  // namespace memoirfs
