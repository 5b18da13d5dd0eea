#pragma once

#include <functional>
#include <thread>

#include "store/base/mutex.h"

namespace memoirfs::vfs {

// A thread that runs `work` once a second until it is destroyed.
class Janitor {
 public:
  explicit Janitor(std::function<void()> work);
  ~Janitor();

 private:
  void Run();

  const std::function<void()> work_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace memoirfs::vfs
