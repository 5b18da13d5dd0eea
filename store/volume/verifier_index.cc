// The index against a replay of the chains, in a scratch index beside it.

#include <fmt/format.h>

#include <set>

#include "store/volume/verifier.h"

namespace memoirfs::volume {
namespace {

using meta::Table;

constexpr char kScratch[] = "staging/verify";
constexpr size_t kFlushBytes = 8U << 20;
constexpr int kTries = 5;
constexpr size_t kMaxProblems = 100;
constexpr journal::Lsn kNow{0, 0};

std::string Shown(const std::optional<Bytes>& value) {
  return value ? fmt::format("a row of {} bytes, digest {}", value->size(),
                             Sha256::Of(*value).ToHex().substr(0, 16))
               : "nothing";
}

// Rows of files that are created and not committed yet, and of inodes without a name, are no
// record's.
Result<bool> IsOutsideTheRecord(const Tables& live, StreamId stream, ByteView key, ByteView value) {
  switch (key.front()) {
    case 'I': {
      ASSIGN_OR_RETURN(const auto row, meta::InodeRow::Decode(value));
      return row.seq == Seq() || row.nlink == 0;
    }
    case 'D':
    case 'C': {
      InodeId ino;
      if (key.front() == 'D') {
        ASSIGN_OR_RETURN(const auto row, meta::DentryRow::Decode(value));
        ino = row.ino;
      } else {
        ASSIGN_OR_RETURN(const auto row, meta::CookieRow::Decode(value));
        ino = row.ino;
      }
      ASSIGN_OR_RETURN(const auto inode, live.Inode(stream, ino));
      return inode && inode->seq == Seq();
    }
    default:
      return false;
  }
}

// A directory's times follow uncommitted entries too: they are compared without them.
Bytes Comparable(ByteView key, ByteView value) {
  if (key.front() != 'I' && key.front() != 'V') return Bytes(value);
  auto row = meta::InodeRow::Decode(value);
  if (!row.ok() || !row->attributes.IsDirectory()) return Bytes(value);
  row->attributes.mtime = row->attributes.ctime = 0;
  return row->Encode();
}

}  // namespace

Status Verifier::ReplayInto(meta::Index& scratch, const Stream& stream, Seq upto) {
  const Tables tables(scratch);
  Status applied;
  const Status read = chain::ForEachLine(v_.io_, stream.id, [&](uint64_t, std::string_view line) {
    ASSIGN_OR_RETURN(const chain::ParsedRecord record, chain::ParseRecord(line));
    if (record.seq > upto) return Status();
    if (record.seq.value % kRecordsPerTell == 0) {
      TRY(Tell("index of " + stream.agent, record.seq.value, upto.value));
    }
    meta::Batch batch;
    const RecordPlace place{record.stream, record.agent, record.seq, record.hash, record.ts};
    TRY(ApplyChange(tables, place, record.change, batch));
    scratch.Apply(std::move(batch), kNow);
    return scratch.overlay_bytes() < kFlushBytes ? Status() : scratch.Flush(kNow);
  });
  return read;
}

Result<std::vector<VerifyProblem>> Verifier::CompareRows(Stream& stream,
                                                         const meta::Index& scratch) {
  std::vector<VerifyProblem> problems;
  const Tables live(*v_.index_);
  const Tables replayed(scratch);
  std::set<Bytes> told;  // keys: what differs on both sides is met from each
  // Every row of one side must be on the other, and equal.
  const auto compare = [&](const meta::Index& from, const Tables& from_tables,
                           const meta::Index& to, bool from_live, ByteView prefix) {
    Status failure;
    const Status scanned = from.Scan(prefix, prefix, [&](ByteView key, ByteView value) {
      const auto outside = IsOutsideTheRecord(from_tables, stream.id, key, value);
      const auto other = to.Get(key);
      if (!outside.ok() || !other.ok()) {
        failure = outside.ok() ? other.status() : outside.status();
        return false;
      }
      const bool equal = *other && Comparable(key, **other) == Comparable(key, value);
      const bool dropped = !from_live && !*other && key.front() == 'X';  // with its orphan
      if (!*outside && !equal && !dropped && problems.size() < kMaxProblems &&
          told.emplace(key).second) {
        const std::optional<Bytes> mine{Bytes(value)};
        problems.push_back({"index", fmt::format("agent {}, table {}", stream.agent, key.front()),
                            Shown(from_live ? *other : mine), Shown(from_live ? mine : *other)});
      }
      return true;
    });
    return failure.ok() ? scanned : failure;
  };
  for (const Table table : {Table::kInode, Table::kDentry, Table::kCookie, Table::kXattr,
                            Table::kNameHistory, Table::kVersion}) {
    const Bytes prefix = meta::TablePrefix(table, stream.id);
    TRY(compare(scratch, replayed, *v_.index_, false, prefix));
    TRY(compare(*v_.index_, live, scratch, true, prefix));
  }
  return problems;
}

Result<std::vector<VerifyProblem>> Verifier::CompareOnce(Stream& stream) {
  const MutexLock scratch_lock(v_.scratch_mutex_);
  const chain::Head head = HeadOf(stream);
  TRY(v_.WriteOutAll());
  TRY(meta::DestroyIndex(v_.io_, kScratch));
  std::vector<VerifyProblem> problems;
  {
    ASSIGN_OR_RETURN(const auto scratch, meta::Index::Open(v_.io_, kScratch));
    TRY(ReplayInto(*scratch, stream, head.seq));
    ASSIGN_OR_RETURN(problems, CompareRows(stream, *scratch));
  }
  TRY(meta::DestroyIndex(v_.io_, kScratch));
  return problems;
}

Status Verifier::CheckIndex(Stream& stream) {
  for (int attempt = 1;; ++attempt) {
    const Seq before = HeadOf(stream).seq;
    const auto problems = CompareOnce(stream);
    if (problems.code() == Code::kInterrupted) return problems.status();
    if (!problems.ok()) {
      Problem({"index", "agent " + stream.agent, "an index that can be compared with the chain",
               problems.status().ToString()});
      return {};
    }
    // What changed while it was compared is no evidence: once more.
    if (!problems->empty() && HeadOf(stream).seq != before && attempt < kTries) continue;
    for (const VerifyProblem& problem : *problems) Problem(problem);
    return {};
  }
}

}  // namespace memoirfs::volume
