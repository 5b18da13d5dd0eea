// Every object that the chains refer to, and every file that objects lie in.

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "store/cas/chunk_tree.h"
#include "store/journal/scan.h"
#include "store/volume/verifier.h"

namespace memoirfs::volume {

Result<std::vector<Verifier::Reference>> Verifier::CollectReferences(
    const std::vector<Stream*>& streams) const {
  std::vector<Reference> references;
  for (const Stream* const stream : streams) {
    Status failure;
    const Bytes versions = meta::TablePrefix(meta::Table::kVersion, stream->id);
    TRY(v_.index_->Scan(versions, versions, [&](ByteView key, ByteView value) {
      const auto row = meta::InodeRow::Decode(value);
      if (!row.ok()) {
        failure = row.status();
        return false;
      }
      // What removed the last name left the content of the version before.
      const bool has_content =
          row->nlink != 0 && (row->attributes.IsRegular() || row->attributes.IsSymlink());
      if (has_content && row->content.size != 0) {
        references.push_back({row->content, stream->id, meta::InodeOfKey(key), row->seq});
      }
      return true;
    }));
    TRY(failure);
    const Bytes xattrs = meta::TablePrefix(meta::Table::kXattr, stream->id);
    TRY(v_.index_->Scan(xattrs, xattrs, [&](ByteView key, ByteView value) {
      const auto content = meta::DecodeContentRow(value);
      if (content.ok() && content->size != 0) {
        references.push_back({*content, stream->id, meta::InodeOfKey(key), Seq()});
      }
      return true;
    }));
  }
  return references;
}

std::string Verifier::Where(const Reference& reference) const {
  std::string agent = "?";
  if (const auto stream = v_.FindStream(reference.stream); stream.ok()) agent = (*stream)->agent;
  const auto row = v_.tables_->VersionAt(reference.stream, reference.ino, reference.seq);
  std::string path = v_.tables_->PathOf(reference.stream, reference.ino);
  if (row.ok() && row->has_value()) {
    path = v_.tables_->PathOf(reference.stream, (*row)->parent, (*row)->name);
  }
  return fmt::format("agent {}, {}@{}", agent, path, reference.seq.value);
}

bool Verifier::FirstVisit(const Digest& digest) {
  const MutexLock lock(mutex_);
  return visited_.insert(digest).second;
}

void Verifier::CheckReference(const Reference& reference) {
  const auto check = [&](const Digest& digest, uint64_t expected_size, bool has_size) {
    if (!FirstVisit(digest)) return Status();
    const auto bytes = v_.objects_->GetFromDisk(digest);
    if (!bytes.ok()) {
      Problem({"object", Where(reference), "digest " + digest.ToHex(), bytes.status().ToString()});
      return Status();
    }
    if (has_size && (*bytes)->size() != expected_size) {
      Problem({"object", Where(reference), fmt::format("{} bytes", expected_size),
               fmt::format("{} bytes", (*bytes)->size())});
    }
    Count(&VerifyReport::objects);
    Count(&VerifyReport::bytes, (*bytes)->size());
    return Status();
  };
  if (reference.content.kind == ContentKind::kFlat) {
    (void)check(reference.content.digest, reference.content.size, true).ok();
    return;
  }
  const Status walked = cas::ChunkTree::ForEachObject(
      *v_.objects_, reference.content, [&](const Digest& digest, bool is_node, uint64_t length) {
        return check(digest, length, !is_node);
      });
  if (!walked.ok()) {
    Problem({"object", Where(reference), "digest " + reference.content.digest.ToHex(),
             walked.ToString()});
  }
}

Status Verifier::CheckReferences(const std::vector<Reference>& references) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < references.size(); i = next++) CheckReference(references[i]);
  };
  std::vector<std::thread> helpers;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < cores; ++i) helpers.emplace_back(work);
  Status told;
  for (size_t i = next++; i < references.size(); i = next++) {
    told = Tell("objects", i, references.size());
    if (!told.ok())
      next = references.size();
    else
      CheckReference(references[i]);
  }
  for (std::thread& helper : helpers) helper.join();
  TRY(told);
  return Tell("objects", references.size(), references.size());
}

Status Verifier::CheckPacks() {
  ASSIGN_OR_RETURN(const auto names, v_.io_.List(journal::kPackDirectory));
  for (size_t i = 0; i < names.size(); ++i) {
    TRY(Tell("packs", i, names.size()));
    const std::string path = std::string(journal::kPackDirectory) + "/" + names[i];
    const auto pack = journal::PackOfName(names[i]);
    if (!pack) {
      Problem({"pack", path, "a pack's name", "a file that is not the store's"});
      continue;
    }
    const auto problems = journal::VerifyPack(v_.io_, *pack);
    if (problems.code() == Code::kNotFound) continue;  // removed meanwhile
    Count(&VerifyReport::packs);
    if (!problems.ok()) {
      Problem({"pack", path, "a readable pack", problems.status().ToString()});
      continue;
    }
    for (const std::string& text : *problems) {
      Problem({"pack", path, "frames and footer as written", text});
    }
  }
  return {};
}

// The journals that were not sealed, as far as they are durable.
void Verifier::CheckJournals() {
  const std::vector<journal::Lsn> full = v_.journal_->FullJournals();
  const journal::Lsn durable = v_.journal_->durable();
  for (const journal::Lsn end : full) {
    if (end < durable) CheckJournal(end);
  }
  CheckJournal(durable);
}

void Verifier::CheckJournal(journal::Lsn end) {
  const std::string path = journal::JournalPath(end.journal);
  const auto file = v_.io_.Open(path, OpenMode::kRead);
  const bool is_active = end.journal == v_.journal_->end().journal;
  if (file.code() == Code::kNotFound && !is_active) return;  // sealed meanwhile
  if (!file.ok()) {
    Problem({"journal", path, "a readable journal", file.status().ToString()});
    return;
  }
  const auto scan = journal::ScanFrames(**file, journal::PackId{end.journal, false}, 0,
                                        [](const auto&, const auto&, auto) { return Status(); },
                                        {.durable = end});
  if (!scan.ok()) {
    Problem({"journal", path, "readable frames", scan.status().ToString()});
    return;
  }
  for (const journal::Damage& damage : scan->damage) {
    Problem({"journal", fmt::format("{}, offset {}", path, damage.offset), "a frame as written",
             fmt::format("{} bytes that are not", damage.length)});
  }
  if (scan->good_end < end.offset) {
    Problem({"journal", fmt::format("{}, offset {}", path, scan->good_end),
             fmt::format("frames up to {}", end.offset), "bytes that are no frame"});
  }
}

Status Verifier::CheckObjects(const std::vector<Stream*>& streams) {
  ASSIGN_OR_RETURN(const auto references, CollectReferences(streams));
  TRY(CheckReferences(references));
  if (request_.agent) return {};  // packs hold every agent's
  CheckJournals();                // first: one that is sealed meanwhile is among the packs
  return CheckPacks();
}

}  // namespace memoirfs::volume
