#pragma once

// Errors as values. Status is "fine" or one Code with a message, an optional errno and context
// frames; Result<T> is a T or a Status that is not fine. Both are [[nodiscard]].
//
// A Status that is fine costs one null pointer. Copies share the (immutable) text. Thread-safe to
// copy and read; one object is not to be assigned by two threads at once.

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace memoirfs {

// What went wrong, in terms of this project. ErrnoOf() gives what a system call would say.
enum class Code : uint8_t {
  kOk = 0,
  kNotFound,         // ENOENT
  kExists,           // EEXIST
  kInvalidArgument,  // EINVAL
  kNotDirectory,     // ENOTDIR
  kIsDirectory,      // EISDIR
  kNotEmpty,         // ENOTEMPTY
  kNameTooLong,      // ENAMETOOLONG
  kIllegalName,      // EILSEQ: a name that is not valid UTF-8
  kTooLarge,         // EFBIG
  kTooManyLinks,     // EMLINK
  kCrossStream,      // EXDEV: between two streams
  kNotSupported,     // EOPNOTSUPP
  kPermission,       // EPERM
  kAccess,           // EACCES
  kReadOnly,         // EROFS
  kNoSpace,          // ENOSPC
  kQuota,            // EDQUOT
  kNoAttribute,      // ENODATA
  kRange,            // ERANGE
  kNoDevice,         // ENXIO: SEEK_DATA and SEEK_HOLE past the end
  kStale,            // ESTALE
  kLoop,             // ELOOP
  kTooManyFiles,     // EMFILE
  kOutOfMemory,      // ENOMEM
  kInterrupted,      // EINTR
  kCorrupt,          // EIO: bytes that do not match what was recorded
  kIo,               // EIO: the system could not read or write
  kUnknownFormat,    // EIO: made by a version that this one does not understand
  kLocked,           // EBUSY: another process holds the store
  kBusy,             // EBUSY
  kUncommitted,      // EBUSY: asks for a record of a file that has none yet; commit it, try again
  kUnavailable,      // EAGAIN: stopping, or not started
  kInternal,         // EIO: a fault of ours
};

std::string_view CodeName(Code code);

// The errno of a Code, without a Status. Exhaustive: a new Code does not compile without its line.
int ErrnoOf(Code code);

// The Code that fits an errno of a system call; kIo where none fits better.
Code CodeOfErrno(int err);

// A lack that passes by itself or by cleaning up (space, quota, descriptors, memory), as opposed to
// a disk that fails.
bool IsShortage(Code code);

// A lack of room: on the disk, or in somebody's quota.
bool IsFull(Code code);

// What the state of a file explains (its bytes, its kind, a sector that cannot be read, its
// absence), as opposed to a lack, a refusal or a fault of ours.
bool IsDamage(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, int sys_errno = 0);

  // The failure of a system call: "<what>: <strerror>".
  static Status FromErrno(int err, std::string_view what);

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  // The errno to answer a caller with; 0 when ok.
  int ToErrno() const;
  const std::string& message() const;
  // "<frame>: <frame>: <message>", outermost first; "ok" when ok.
  std::string ToString() const;

  // The same failure with one more frame of context in front. ok stays ok.
  Status WithContext(std::string_view frame) const;

 private:
  struct Rep {
    Code code;
    int sys_errno;
    std::string message;  // context frames included
  };
  std::shared_ptr<const Rep> rep_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<1>, std::move(value)) {}        // NOLINT: implicit
  Result(Status status) : state_(std::in_place_index<0>, std::move(status)) {  // NOLINT: implicit
    if (std::get<0>(state_).ok()) {
      state_.template emplace<0>(Code::kInternal, "a Result was made of a Status that is ok");
    }
  }

  bool ok() const { return state_.index() == 1; }
  Status status() const { return ok() ? Status() : std::get<0>(state_); }
  Code code() const { return ok() ? Code::kOk : std::get<0>(state_).code(); }

  // Precondition: ok().
  T& value() & { return std::get<1>(state_); }
  const T& value() const& { return std::get<1>(state_); }
  T&& value() && { return std::get<1>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<Status, T> state_;
};

namespace status_internal {
inline Status AsStatus(Status status) { return status; }
template <typename T>
Status AsStatus(const Result<T>& result) {
  return result.status();
}
}  // namespace status_internal

}  // namespace memoirfs

#define MEMOIRFS_CONCAT_INNER(a, b) a##b
#define MEMOIRFS_CONCAT(a, b) MEMOIRFS_CONCAT_INNER(a, b)

// Returns early with the failure of `expr` (a Status or a Result).
#define TRY(expr)                                               \
  do {                                                          \
    if (const auto& try_value_ = (expr); !try_value_.ok())      \
      return ::memoirfs::status_internal::AsStatus(try_value_); \
  } while (0)

// Declares or assigns `lhs` from a Result, or returns early with its failure.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(MEMOIRFS_CONCAT(result_, __LINE__), lhs, expr)
// NOLINTBEGIN(bugprone-macro-parentheses): what is declared takes none
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  if (!(tmp).ok()) return (tmp).status();     \
  lhs = std::move(tmp).value()
// NOLINTEND(bugprone-macro-parentheses)
