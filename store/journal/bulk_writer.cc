#include <utility>

#include "store/journal/footer.h"
#include "store/journal/frame_group.h"
#include "store/journal/pack.h"
#include "store/journal/paths.h"

namespace memoirfs::journal {
namespace {

constexpr uint64_t kWritebackStep = 8 << 20;
constexpr uint64_t kMaxUnsynced = 32 << 20;

class BulkWriterImpl final : public BulkWriter {
 public:
  BulkWriterImpl(FileIo& io, uint64_t number, uint64_t epoch, std::unique_ptr<File> file)
      : io_(io),
        pack_{number, true},
        epoch_(epoch),
        file_(std::move(file)),
        path_(StagedBulkPath(number)) {}

  ~BulkWriterImpl() override {
    // What cannot be removed now is found in staging/ at the next opening.
    if (!finished_) (void)io_.Remove(path_);
  }
  BulkWriterImpl(const BulkWriterImpl&) = delete;
  BulkWriterImpl& operator=(const BulkWriterImpl&) = delete;

  Result<Location> Append(const Digest& digest, ByteView bytes) override {
    TRY(failure_);
    const NewFrame frame = BlobFrame(digest, bytes);
    ASSIGN_OR_RETURN(FrameGroup group, FrameGroup::Assemble({&frame, 1}));
    TRY(BoundUnsynced(group.size()));
    const Location location = group.Place({pack_, epoch_, end_, {}}).front();
    TRY(Write(group));
    contents_.objects.push_back({digest, location});
    return location;
  }

  Status Finish() override {
    TRY(failure_);
    failure_ = Publish();
    finished_ = failure_.ok();
    return failure_;
  }

  bool failed() const override { return !failure_.ok(); }
  uint64_t bytes_written() const override { return end_; }

 private:
  Status BoundUnsynced(uint64_t more) {
    if (end_ + more - synced_ <= kMaxUnsynced) return {};
    failure_ = file_->DataSync();
    if (failure_.ok()) synced_ = end_;
    return failure_;
  }

  // What a shortage let through lies behind the end: the next frame, or the footer, replaces it.
  Status Write(const FrameGroup& group) {
    const Status written = file_->WriteAt(end_, group.buffer());
    if (!written.ok()) {
      if (!IsShortage(written.code())) failure_ = written;
      return written;
    }
    end_ += group.size();
    if (end_ - written_back_ >= kWritebackStep) {
      file_->StartWriteback(written_back_, end_ - written_back_);
      written_back_ = end_;
    }
    return {};
  }

  Status Publish() {
    TRY(WriteFooter(*file_, pack_, end_, std::move(contents_)));
    TRY(io_.Rename(path_, PackPath(pack_)));
    path_ = PackPath(pack_);
    TRY(io_.SyncDirectory(kPackDirectory));
    return io_.SyncDirectory(kStagingDirectory);
  }

  FileIo& io_;
  const PackId pack_;
  const uint64_t epoch_;
  const std::unique_ptr<File> file_;
  std::string path_;
  PackContents contents_;
  uint64_t end_ = 0;
  uint64_t synced_ = 0;
  uint64_t written_back_ = 0;
  bool finished_ = false;
  Status failure_;  // sticky: after a failed sync nothing of the file is certain
};

}  // namespace

Result<std::unique_ptr<BulkWriter>> CreateBulkPack(FileIo& io, uint64_t number, uint64_t epoch) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, io.Open(StagedBulkPath(number), OpenMode::kCreate));
  return std::unique_ptr<BulkWriter>(
      std::make_unique<BulkWriterImpl>(io, number, epoch, std::move(file)));
}

}  // namespace memoirfs::journal
