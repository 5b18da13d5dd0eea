#include "store/base/status.h"

#include <cstring>

namespace memoirfs {
namespace {

struct CodeFacts {
  std::string_view name;
  int err;
};

CodeFacts FactsOf(Code code) {
  switch (code) {
    case Code::kOk:
      return {"ok", 0};
    case Code::kNotFound:
      return {"not found", ENOENT};
    case Code::kExists:
      return {"exists", EEXIST};
    case Code::kInvalidArgument:
      return {"invalid argument", EINVAL};
    case Code::kNotDirectory:
      return {"not a directory", ENOTDIR};
    case Code::kIsDirectory:
      return {"is a directory", EISDIR};
    case Code::kNotEmpty:
      return {"not empty", ENOTEMPTY};
    case Code::kNameTooLong:
      return {"name too long", ENAMETOOLONG};
    case Code::kIllegalName:
      return {"name is not UTF-8", EILSEQ};
    case Code::kTooLarge:
      return {"too large", EFBIG};
    case Code::kTooManyLinks:
      return {"too many links", EMLINK};
    case Code::kCrossStream:
      return {"across streams", EXDEV};
    case Code::kNotSupported:
      return {"not supported", EOPNOTSUPP};
    case Code::kPermission:
      return {"not permitted", EPERM};
    case Code::kAccess:
      return {"access denied", EACCES};
    case Code::kReadOnly:
      return {"read-only", EROFS};
    case Code::kNoSpace:
      return {"no space", ENOSPC};
    case Code::kQuota:
      return {"quota exceeded", EDQUOT};
    case Code::kNoAttribute:
      return {"no such attribute", ENODATA};
    case Code::kRange:
      return {"out of range", ERANGE};
    case Code::kNoDevice:
      return {"past the end", ENXIO};
    case Code::kStale:
      return {"stale", ESTALE};
    case Code::kLoop:
      return {"too many links followed", ELOOP};
    case Code::kTooManyFiles:
      return {"too many open files", EMFILE};
    case Code::kOutOfMemory:
      return {"out of memory", ENOMEM};
    case Code::kInterrupted:
      return {"interrupted", EINTR};
    case Code::kCorrupt:
      return {"corrupt", EIO};
    case Code::kIo:
      return {"input/output error", EIO};
    case Code::kUnknownFormat:
      return {"unknown format", EIO};
    case Code::kLocked:
      return {"locked", EBUSY};
    case Code::kBusy:
      return {"busy", EBUSY};
    case Code::kUncommitted:
      return {"not committed", EBUSY};
    case Code::kUnavailable:
      return {"unavailable", EAGAIN};
    case Code::kInternal:
      return {"internal fault", EIO};
  }
  return {"internal fault", EIO};
}

}  // namespace

std::string_view CodeName(Code code) { return FactsOf(code).name; }

int ErrnoOf(Code code) { return FactsOf(code).err; }

Code CodeOfErrno(int err) {
  switch (err) {
    case ENOENT:
      return Code::kNotFound;
    case EEXIST:
      return Code::kExists;
    case EINVAL:
      return Code::kInvalidArgument;
    case ENOTDIR:
      return Code::kNotDirectory;
    case EISDIR:
      return Code::kIsDirectory;
    case ENOTEMPTY:
      return Code::kNotEmpty;
    case ENAMETOOLONG:
      return Code::kNameTooLong;
    case EILSEQ:
      return Code::kIllegalName;
    case EFBIG:
      return Code::kTooLarge;
    case EMLINK:
      return Code::kTooManyLinks;
    case EXDEV:
      return Code::kCrossStream;
    case EOPNOTSUPP:
      return Code::kNotSupported;
    case EPERM:
      return Code::kPermission;
    case EACCES:
      return Code::kAccess;
    case EROFS:
      return Code::kReadOnly;
    case ENOSPC:
      return Code::kNoSpace;
    case EDQUOT:
      return Code::kQuota;
    case ENODATA:
      return Code::kNoAttribute;
    case ERANGE:
      return Code::kRange;
    case ENXIO:
      return Code::kNoDevice;
    case ESTALE:
      return Code::kStale;
    case ELOOP:
      return Code::kLoop;
    case EMFILE:
    case ENFILE:
      return Code::kTooManyFiles;
    case ENOMEM:
      return Code::kOutOfMemory;
    case EINTR:
      return Code::kInterrupted;
    case EBUSY:
      return Code::kBusy;
    case EAGAIN:
      return Code::kUnavailable;
    default:
      return Code::kIo;
  }
}

bool IsFull(Code code) { return code == Code::kNoSpace || code == Code::kQuota; }

bool IsShortage(Code code) {
  return IsFull(code) || code == Code::kTooManyFiles || code == Code::kOutOfMemory;
}

bool IsDamage(Code code) {
  return code == Code::kCorrupt || code == Code::kIo || code == Code::kNotFound ||
         code == Code::kNotDirectory || code == Code::kIsDirectory || code == Code::kLoop;
}

Status::Status(Code code, std::string message, int sys_errno) {
  if (code == Code::kOk) return;
  rep_ = std::make_shared<const Rep>(Rep{code, sys_errno, std::move(message)});
}

Status Status::FromErrno(int err, std::string_view what) {
  std::string message(what);
  message += ": ";
  message += std::strerror(err);  // NOLINT(concurrency-mt-unsafe): glibc's is thread-safe
  return Status(CodeOfErrno(err), std::move(message), err);
}

int Status::ToErrno() const {
  if (!rep_) return 0;
  return rep_->sys_errno != 0 && rep_->code != Code::kCorrupt ? rep_->sys_errno
                                                              : ErrnoOf(rep_->code);
}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return rep_ ? rep_->message : kEmpty;
}

std::string Status::ToString() const { return rep_ ? rep_->message : "ok"; }

Status Status::WithContext(std::string_view frame) const {
  if (!rep_) return *this;
  std::string message(frame);
  message += ": ";
  message += rep_->message;
  return Status(rep_->code, std::move(message), rep_->sys_errno);
}

}  // namespace memoirfs
