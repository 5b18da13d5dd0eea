#pragma once

// The steps of VerifyVolume, one file each kind. Internal to store/volume.

#include <string>
#include <unordered_set>
#include <vector>

#include "store/base/mutex.h"
#include "store/volume/verify.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {

constexpr uint64_t kRecordsPerTell = 1024;

// Not thread-safe but where said. Changes may be made to the volume while it runs.
class Verifier {
 public:
  Verifier(Volume::Impl& volume, const VerifyRequest& request, const ProgressListener& progress)
      : v_(volume), request_(request), progress_(progress) {}

  Result<VerifyReport> Run();

 private:
  // A content that a version of a file refers to.
  struct Reference {
    ContentId content;
    StreamId stream;
    InodeId ino;
    Seq seq;
  };

  Result<std::vector<Stream*>> ChosenStreams() const;
  // kInterrupted when the listener wants no more.
  Status Tell(const std::string& what, uint64_t done, uint64_t total);
  void Problem(VerifyProblem problem);                       // thread-safe
  void Count(uint64_t VerifyReport::*what, uint64_t n = 1);  // thread-safe

  // verifier.cc
  void TellUnrecorded(const std::vector<Stream*>& streams);
  Status CheckNoOtherChains();
  Status CheckHead(const Stream& stream);
  Status CheckChainEnd(const Stream& stream, const std::string& where);
  Status CheckChain(const Stream& stream);

  // verifier_index.cc
  Status CheckIndex(Stream& stream);
  Result<std::vector<VerifyProblem>> CompareOnce(Stream& stream);
  Status ReplayInto(meta::Index& scratch, const Stream& stream, Seq upto);
  Result<std::vector<VerifyProblem>> CompareRows(Stream& stream, const meta::Index& scratch);

  // verifier_objects.cc
  Status CheckObjects(const std::vector<Stream*>& streams);
  Result<std::vector<Reference>> CollectReferences(const std::vector<Stream*>& streams) const;
  Status CheckReferences(const std::vector<Reference>& references);
  void CheckReference(const Reference& reference);
  bool FirstVisit(const Digest& digest);  // thread-safe
  std::string Where(const Reference& reference) const;
  Status CheckPacks();
  void CheckJournals();
  void CheckJournal(journal::Lsn end);

  Volume::Impl& v_;
  const VerifyRequest& request_;
  const ProgressListener& progress_;
  Mutex mutex_;
  VerifyReport report_ GUARDED_BY(mutex_);
  std::unordered_set<Digest> visited_ GUARDED_BY(mutex_);
};

}  // namespace memoirfs::volume
