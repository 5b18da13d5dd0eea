#pragma once

// Plays the kernel for a fuse::Session over a socket pair: sends requests as the FUSE protocol lays
// them out and reads answers and notifications, without a mount and without rights. Anything that
// does not come within ten seconds throws, so that a test fails instead of hanging.
//
// One thread uses it at a time.

#include <linux/fuse.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memoirfs::testing {

// The bytes of a protocol structure, as a part of a request.
template <typename T>
std::string_view Raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

class FakeKernel {
 public:
  // Every capability that a kernel of protocol 7.38 has, unless the test says otherwise.
  static constexpr uint32_t kAllCapabilities = 0x3fffffffU;

  struct Answer {
    int error = 0;  // positive
    std::string body;

    // The structure that the body begins with; throws where it is shorter.
    template <typename T>
    T As() const {
      T value{};
      CopyFrom(&value, sizeof(value));
      return value;
    }
    void CopyFrom(void* to, size_t size) const;
  };

  struct Notification {
    int code = 0;  // FUSE_NOTIFY_…
    std::string body;
  };

  struct Entry {
    std::string name;
    uint64_t ino = 0;
    uint64_t offset = 0;
    uint32_t type = 0;
    fuse_entry_out found{};  // of READDIRPLUS
  };

  struct Credentials {
    uint32_t uid = 1000, gid = 1001, pid = 4711;
  };

  // Sends INIT at once: the session's Attach reads it and returns.
  explicit FakeKernel(uint32_t capabilities = kAllCapabilities);
  ~FakeKernel();
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  // The session's end of the pair, for Session::Attach, which takes it.
  int TakeSessionEnd() { return std::exchange(session_end_, -1); }
  const fuse_init_out& init();  // the answer to INIT
  void Close();                 // as an unmount

  void ActAs(const Credentials& credentials) { credentials_ = credentials; }

  // Sends a request and returns its unique number; Wait takes the answer to it, in any order.
  uint64_t Send(uint32_t opcode, uint64_t node, std::string_view body = {});
  Answer Wait(uint64_t unique);
  Answer Ask(uint32_t opcode, uint64_t node, std::string_view body = {}) {
    return Wait(Send(opcode, node, body));
  }
  void SendBytes(std::string_view bytes);  // anything at all
  Notification WaitNotification();
  // Whether an answer or notification is there that nobody waited for.
  bool HasUnread();

  Answer Lookup(uint64_t parent, std::string_view name);
  Answer GetAttr(uint64_t node);
  Answer MakeDirectory(uint64_t parent, std::string_view name, uint32_t mode);
  Answer Create(uint64_t parent, std::string_view name, int flags, uint32_t mode);
  Answer Open(uint64_t node, int flags);
  Answer Read(uint64_t node, uint64_t handle, uint64_t offset, uint32_t size);
  Answer Write(uint64_t node, uint64_t handle, uint64_t offset, std::string_view data,
               uint32_t write_flags = 0);
  Answer Flush(uint64_t node, uint64_t handle);
  Answer Release(uint64_t node, uint64_t handle);
  Answer Rename(uint64_t parent, std::string_view name, uint64_t new_parent,
                std::string_view new_name, uint32_t flags);
  Answer GetXattr(uint64_t node, std::string_view name, uint32_t size);
  Answer SetXattr(uint64_t node, std::string_view name, std::string_view value, int flags);
  Answer ReadDirectory(uint64_t node, uint64_t offset, uint32_t size, bool plus);

  static std::vector<Entry> ParseListing(const Answer& answer, bool plus);

 private:
  void ReadMessage();

  int kernel_end_ = -1;
  int session_end_ = -1;
  uint64_t next_unique_ = 2;  // even, as the kernel's
  uint64_t init_unique_ = 0;
  bool has_init_ = false;
  fuse_init_out init_{};
  Credentials credentials_;
  std::map<uint64_t, Answer> answers_;
  std::deque<Notification> notifications_;
};

}  // namespace memoirfs::testing
