// The past: the records of a chain, and what a path led to after each of them.

#include <fmt/format.h>

#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

constexpr Seq kNow{UINT64_MAX};

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
  }
  return parts;
}

}  // namespace

Status Volume::Impl::ForEachRecord(StreamId stream, Seq from, const RecordVisitor& visit) {
  ASSIGN_OR_RETURN(const Stream* const found, FindStream(stream));
  if (!journal_->failed()) TRY(WriteOutAll());
  Seq last = HeadOf(*found).seq;
  return chain::ForEachLineFrom(io_, stream, from, [&](uint64_t number, std::string_view line) {
    if (number > last.value) last = HeadOf(*found).seq;
    if (number > last.value) {
      return Status(Code::kCorrupt, fmt::format("{} goes on behind record {}, the last one of the "
                                                "agent. Check it with 'memoirfs verify'",
                                                chain::ChainDirectory(stream), last.value));
    }
    const auto record = chain::ParseRecord(line);
    if (!record.ok()) {
      return record.status().WithContext(chain::ChainDirectory(stream) + ", line " +
                                         std::to_string(number));
    }
    return visit(*record, line);
  });
}

Result<Inode> Volume::Impl::FindVersion(StreamId stream, std::string_view path,
                                        std::optional<Seq> seq) const {
  ASSIGN_OR_RETURN(const Stream* const found, FindStream(stream));
  const Seq at = seq.value_or(kNow);
  if (const Seq last = HeadOf(*found).seq; seq && *seq > last) {
    return Status(Code::kNotFound, "there is no record " + std::to_string(seq->value) +
                                       ": the chain ends at " + std::to_string(last.value));
  }
  InodeId ino = kRootInode;
  for (const std::string_view part : PartsOf(path)) {
    ASSIGN_OR_RETURN(const auto next, tables_->NameAt(stream, ino, part, at));
    if (!next) {
      return Status(Code::kNotFound, "there is no '" + std::string(path) + "'" +
                                         (seq ? " at record " + std::to_string(seq->value) : ""));
    }
    ino = *next;
  }
  ASSIGN_OR_RETURN(const auto row, tables_->VersionAt(stream, ino, at));
  if (!row) return Status(Code::kNotFound, "no version of '" + std::string(path) + "' is kept");
  return Inode{ino, row->attributes, row->nlink, row->content, row->seq, row->parent};
}

}  // namespace memoirfs::volume
