#include <algorithm>
#include <list>
#include <map>
#include <utility>

#include "store/journal/journal.h"
#include "store/journal/pack.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {

class PackReader::Impl {
 public:
  Impl(FileIo& io, size_t max_open_files)
      : io_(io), max_open_files_(std::max<size_t>(max_open_files, 1)) {}

  Result<std::shared_ptr<File>> FileOf(PackId pack) {
    if (std::shared_ptr<File> file = Cached(pack)) return file;
    ASSIGN_OR_RETURN(std::shared_ptr<File> file, OpenWhereItLies(pack));
    Remember(pack, file);
    return file;
  }

  void Forget(PackId pack) {
    MutexLock lock(mutex_);
    const auto found = by_pack_.find(pack);
    if (found == by_pack_.end()) return;
    recent_.erase(found->second);
    by_pack_.erase(found);
  }

 private:
  struct OpenFile {
    PackId pack;
    std::shared_ptr<File> file;
  };

  // Files move from where they are written to packs/, never back: looking there last, a file that
  // moves between two looks is found.
  Result<std::shared_ptr<File>> OpenWhereItLies(PackId pack) {
    const std::string before = pack.bulk ? StagedBulkPath(pack.number) : JournalPath(pack.number);
    Result<std::unique_ptr<File>> file = io_.Open(before, OpenMode::kRead);
    if (file.code() == Code::kNotFound) file = io_.Open(PackPath(pack), OpenMode::kRead);
    if (!file.ok()) return file.status();
    return std::shared_ptr<File>(std::move(file).value());
  }

  std::shared_ptr<File> Cached(PackId pack) {
    MutexLock lock(mutex_);
    const auto found = by_pack_.find(pack);
    if (found == by_pack_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->file;
  }

  void Remember(PackId pack, const std::shared_ptr<File>& file) {
    std::shared_ptr<File> dropped;  // closed after the lock is released
    MutexLock lock(mutex_);
    if (by_pack_.count(pack) != 0) return;  // another reader was quicker
    recent_.push_front({pack, file});
    by_pack_[pack] = recent_.begin();
    if (recent_.size() <= max_open_files_) return;
    dropped = std::move(recent_.back().file);
    by_pack_.erase(recent_.back().pack);
    recent_.pop_back();
  }

  FileIo& io_;
  const size_t max_open_files_;
  Mutex mutex_;
  std::list<OpenFile> recent_ GUARDED_BY(mutex_);  // most recently used first
  std::map<PackId, std::list<OpenFile>::iterator> by_pack_ GUARDED_BY(mutex_);
};

PackReader::PackReader(FileIo& io, size_t max_open_files)
    : impl_(std::make_unique<Impl>(io, max_open_files)) {}
PackReader::~PackReader() = default;

Result<Bytes> PackReader::ReadPayload(const Location& where) {
  const auto short_of = [&](std::string_view why) {
    return Status(Code::kCorrupt, PackPath(where.pack) + " at " + std::to_string(where.offset) +
                                      ": " + std::string(why));
  };
  constexpr uint64_t kMaxOffset = uint64_t{1} << 62;
  if (where.length > FrameHeader::kMaxPayload || where.offset > kMaxOffset) {
    return short_of("no frame is there");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<File> file, impl_->FileOf(where.pack));
  ASSIGN_OR_RETURN(Bytes payload, file->ReadAt(where.offset + FrameHeader::kSize, where.length));
  if (payload.size() != where.length) return short_of("the file ends within the payload");
  return payload;
}

void PackReader::Invalidate(PackId pack) { impl_->Forget(pack); }

}  // namespace memoirfs::journal
