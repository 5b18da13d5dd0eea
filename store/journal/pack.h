#pragma once

// Packs: files of frames with a footer, never written again. A sealed journal ("packs/<n>.pack"),
// a recovered one, or a bulk pack ("packs/<n>.bulk", one big write). And reading frames from
// wherever they lie.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/file_io.h"
#include "store/base/mutex.h"
#include "store/journal/frame.h"
#include "store/journal/paths.h"
#include "store/journal/scan.h"

namespace memoirfs::journal {

struct PackedObject {
  Digest digest;
  Location location;  // type kBlob or kExtend
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const PackedObject&, const PackedObject&) = default;
};

struct PackedRecord {
  uint32_t stream = 0;
  uint64_t seq = 0;
  Location location;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const PackedRecord&, const PackedRecord&) = default;
};

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of <=> for a pointer
  friend auto operator<=>(const ByteRange&, const ByteRange&) = default;
};

// What a footer says: the frames of the pack, so that it need not be scanned.
struct PackContents {
  uint64_t frames_end = 0;            // where the footer starts; of a damaged one: the file's end
  std::vector<PackedObject> objects;  // by digest, then by offset
  std::vector<PackedRecord> records;  // by offset
  std::vector<Location> states;       // by offset
  std::vector<ByteRange> damaged;     // by offset: no frames there since before the sealing
};

std::string PackPath(PackId pack);
// Of a name in packs/, "<20 digits>.pack" or ".bulk"; nullopt for any other.
std::optional<PackId> PackOfName(const std::string& name);
// Those in packs/, by number; other files there are left out.
Result<std::vector<PackId>> ListPacks(FileIo& io);

// Contents by the footer; by a scan of the frames where the footer is damaged (then
// `*footer_damaged` is set, which may be null).
Result<PackContents> ReadPackContents(FileIo& io, PackId pack, bool* footer_damaged);

// Checks footer and every frame. Each problem is one line: what, where, expected, found. Ranges
// that the footer lists as damaged are known already and are no problem of the pack.
Result<std::vector<std::string>> VerifyPack(FileIo& io, PackId pack);

// Copies the frames of journal `number` before `good_end` (damaged ranges too, as they are) into a
// pack of the same number, synced before the log is removed. What lies behind them, where it is
// not zero, is kept as "quarantine/<name>". For recovery: the old file's pages may be marked clean
// without being on the disk, after a failed sync, so nothing of it is relied on. With good_end 0
// there is no pack; the log is removed all the same. May be repeated after a crash in it.
Status CarryIntoPack(FileIo& io, uint64_t number, uint64_t good_end);

// Replaces frames of a pack that `erases` chooses by frames of zeros of the same length: all other
// locations stay. Damaged ranges, of which nobody can say whose bytes they hold, become zeros as
// well. Where the footer is damaged the frames are scanned, and whatever follows the last good one
// is dropped. The pack is written anew, synced, and put in the old one's place, whose blocks are
// then free (what a disk keeps of freed blocks is the disk's). Nothing is written when there is
// nothing to erase. Returns how many frames were. kUnknownFormat for a footer of a later version.
using FrameChooser = std::function<bool(const Location& where, ByteView payload)>;
Result<uint64_t> EraseFrames(FileIo& io, PackId pack, const FrameChooser& erases);

// Writes a bulk pack: blobs only, under staging/ until Finish. Not thread-safe; reading through
// PackReader works from the first Append on.
class BulkWriter {
 public:
  virtual ~BulkWriter() = default;  // an unfinished pack is removed
  // A shortage (IsShortage) leaves the pack as it was; after any other failure it has failed.
  virtual Result<Location> Append(const Digest& digest, ByteView bytes) = 0;
  // Footer, sync, rename into packs/, sync of the directory: everything is durable then. Otherwise
  // the pack has failed.
  virtual Status Finish() = 0;
  // It will never be finished, and takes nothing more: nobody knows what of it reaches the disk.
  // What was appended can still be read, as far as the system can.
  virtual bool failed() const = 0;
  virtual uint64_t bytes_written() const = 0;
};

// Reads payloads from journals, packs and bulk packs (those in staging/ too); keeps a bounded
// number of files open. Thread-safe.
class PackReader {
 public:
  explicit PackReader(FileIo& io, size_t max_open_files = 64);
  ~PackReader();

  // The payload as it lies on the disk: the caller verifies it (by its digest). kCorrupt when the
  // file is too short, kNotFound when there is no such file.
  Result<Bytes> ReadPayload(const Location& where);

  // A file was renamed, rewritten or removed: forget its descriptor.
  void Invalidate(PackId pack);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// `number` must be unused. Unsynced bytes never exceed 32 MiB.
Result<std::unique_ptr<BulkWriter>> CreateBulkPack(FileIo& io, uint64_t number, uint64_t epoch);

}  // namespace memoirfs::journal
