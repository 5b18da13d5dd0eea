#include "fs/vfs/janitor.h"

#include <pthread.h>

#include <chrono>

namespace memoirfs::vfs {

Janitor::Janitor(std::function<void()> work) : work_(std::move(work)) {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "memoirfs-janit");
}

Janitor::~Janitor() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

void Janitor::Run() {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) stop_.WaitFor(mutex_, std::chrono::seconds(1));
      if (stopping_) return;
    }
    work_();
  }
}

}  // namespace memoirfs::vfs
