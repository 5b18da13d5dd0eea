#include "tests/support/stored_objects.h"

#include <catch2/catch.hpp>

namespace memoirfs::testing {

Result<std::optional<journal::Location>> FakeLocations::Find(const Digest& digest) {
  if (on_find) on_find();
  const std::lock_guard lock(mutex_);
  ++finds_;
  TRY(failure_);
  const auto at = places_.find(digest);
  if (at == places_.end()) return std::optional<journal::Location>();
  return std::optional<journal::Location>(at->second);
}

std::optional<journal::Location> FakeLocations::Peek(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  const auto at = places_.find(digest);
  return at == places_.end() ? std::nullopt : std::optional<journal::Location>(at->second);
}

void FakeLocations::Set(const Digest& digest, const journal::Location& where) {
  const std::lock_guard lock(mutex_);
  places_[digest] = where;
}

void FakeLocations::Remove(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  places_.erase(digest);
}

void FakeLocations::FailWith(Status failure) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
}

size_t FakeLocations::finds() const {
  const std::lock_guard lock(mutex_);
  return finds_;
}

void RecordedCorruptions::OnCorrupt(const Digest& digest,
                                    const std::optional<journal::Location>& where,
                                    const std::string& why) {
  const std::lock_guard lock(mutex_);
  reports_.push_back({digest, where, why});
}

std::vector<RecordedCorruptions::Report> RecordedCorruptions::reports() const {
  const std::lock_guard lock(mutex_);
  return reports_;
}

StoredObjects::StoredObjects(size_t cache_bytes) {
  for (const char* directory : {"journal", "packs", "staging"}) {
    REQUIRE(io.MakeDirectory(directory).ok());
  }
  journal::JournalOptions options;
  options.file_size = 32U << 20;
  auto journal = journal::Journal::Create(io, options, 1, 1);
  REQUIRE(journal.ok());
  journal_ = std::move(*journal);
  packs_ = std::make_unique<journal::PackReader>(io);
  objects_ = std::make_unique<cas::ObjectStore>(*packs_, locations, &corruptions,
                                                cas::ObjectStoreOptions{cache_bytes});
}

Digest StoredObjects::AddBlob(ByteView bytes) {
  const Digest digest = Sha256::Of(bytes);
  AddBlobAs(digest, bytes);
  return digest;
}

void StoredObjects::AddBlobAs(const Digest& digest, ByteView bytes) {
  Append(digest, journal::BlobFrame(digest, bytes));
}

void StoredObjects::AddExtend(const Digest& whole, const Digest& base, ByteView suffix) {
  Append(whole, journal::ExtendFrame(whole, base, suffix));
}

std::function<Status(const Digest&, Buffer)> StoredObjects::Sink() {
  return [this](const Digest& digest, const Buffer& bytes) {
    AddBlobAs(digest, *bytes);
    return Status();
  };
}

void StoredObjects::DamagePayload(const Digest& digest, uint64_t at) {
  const auto where = locations.Peek(digest);
  REQUIRE(where);
  const std::string path = journal::JournalPath(where->pack.number);
  const uint64_t offset = where->offset + journal::FrameHeader::kSize + at;
  const auto file = io.Open(path, OpenMode::kRead);
  REQUIRE(file.ok());
  Bytes byte = *(*file)->ReadAt(offset, 1);
  byte[0] = static_cast<char>(byte[0] ^ 0x10);
  REQUIRE(io.Overwrite(path, offset, byte));
}

void StoredObjects::Append(const Digest& digest, const journal::NewFrame& frame) {
  const auto appended = journal_->Append(std::span(&frame, 1));
  REQUIRE(appended.ok());
  locations.Set(digest, appended->locations[0]);
}

}  // namespace memoirfs::testing
