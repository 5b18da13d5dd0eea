#include "store/volume/layout.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <sstream>

#include "store/base/digest.h"
#include "store/volume/spare.h"

namespace memoirfs::volume {
namespace {

constexpr char kFormatFile[] = "FORMAT";
constexpr char kStreamsFile[] = "STREAMS";
constexpr char kStreamsMagic[] = "memoirfs-streams";
constexpr char kMagic[] = "memoirfs-store";
constexpr int kVersion = 1;
constexpr std::array kDirectories = {"journal", "packs",      "chains", kIndexDirectory,
                                     "staging", "quarantine", "trash"};

std::string WithChecksum(const std::string& body) {
  return body + "sha256 " + Sha256::Of(body).ToHex() + "\n";
}

bool FitsChecksum(const std::string& text) {
  const size_t checksum_at = text.rfind("sha256 ");
  return checksum_at != std::string::npos && text == WithChecksum(text.substr(0, checksum_at));
}

// What an opening can't make anew where it is missing: there may be content that is missing too.
bool HoldsContent(std::string_view directory) {
  return directory == "journal" || directory == "packs" || directory == "chains";
}

Status CheckDirectory(FileIo& io, const char* directory) {
  const std::string shown = io.root() + "/" + directory;
  const auto facts = io.Stat(directory);
  if (facts.code() == Code::kNotFound && HoldsContent(directory)) {
    return {Code::kCorrupt, shown +
                                " is missing. Restore it from a copy of the store; if nothing "
                                "was in it, make it anew: mkdir -m 700 " +
                                shown};
  }
  if (facts.code() == Code::kNotFound) return {};
  TRY(facts);
  if (facts->is_directory) return {};
  return {Code::kCorrupt, shown + " is not a directory: move it away"};
}

// Makes those that are missing.
Status MakeDirectories(FileIo& io) {
  bool any = false;
  for (const char* directory : kDirectories) {
    const Status made = io.MakeDirectory(directory);
    if (made.code() != Code::kExists) TRY(made);
    any = any || made.ok();
  }
  return any ? io.SyncDirectory(".") : Status();
}

// The value behind `key ` at the start of a line; empty when there is no such line.
std::string ValueOf(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key + " ", 0) == 0) return line.substr(key.size() + 1);
  }
  return {};
}

// A directory of a store with something in it, and no FORMAT: kCorrupt.
Status CheckNoParts(FileIo& io) {
  for (const char* directory : kDirectories) {
    const auto inside = io.List(directory);
    if (!inside.ok() || inside->empty()) continue;
    return Status(Code::kCorrupt, io.root() +
                                      " has the files of a store, but its FORMAT file is missing. "
                                      "Restore that file from a copy of the store: it never "
                                      "changes");
  }
  return {};
}

}  // namespace

Status CheckNothingForeign(FileIo& io) {
  ASSIGN_OR_RETURN(const auto names, io.List("."));
  std::set<std::string> known(kDirectories.begin(), kDirectories.end());
  known.insert({"LOCK", std::string(kFormatFile) + ".tmp", kSpareFile, kStreamsFile, kRebuildMarker,
                kPurgeFile, "control.sock"});
  for (const std::string& name : names) {
    if (known.count(name) != 0) continue;
    return Status(Code::kNotEmpty,
                  io.root() + " is not empty and not a store: choose another directory");
  }
  return {};
}

Status NoStoreAt(const std::string& path) {
  return {Code::kNotFound,
          "there is no store at " + path + ". Make one with: memoirfs init --store " + path};
}

std::string NewUuid() {
  Bytes raw = RandomBytes(16);
  raw[6] = static_cast<char>((raw[6] & 0x0f) | 0x40);
  raw[8] = static_cast<char>((raw[8] & 0x3f) | 0x80);
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<uint8_t>(raw[i]));
  }
  return text;
}

Status CreateLayout(FileIo& io) {
  TRY(CheckNoParts(io));
  TRY(CheckNothingForeign(io));
  TRY(MakeDirectories(io));
  // FORMAT comes last: a directory with it is a whole store.
  const std::string body = fmt::format("{} {}\nid {}\nfeatures\n", kMagic, kVersion, NewUuid());
  TRY(WriteFileAtomically(io, kFormatFile, WithChecksum(body)));
  return io.SyncDirectory(".");
}

Status CheckDirectories(FileIo& io) {
  for (const char* directory : kDirectories) TRY(CheckDirectory(io, directory));
  return {};
}

Status PrepareDirectories(FileIo& io) {
  TRY(CheckDirectories(io));
  return MakeDirectories(io);
}

Result<StoreFormat> ReadFormat(FileIo& io) {
  Result<Bytes> text = ReadWholeFile(io, kFormatFile);
  if (text.code() == Code::kNotFound) {
    TRY(CheckNoParts(io));
    return NoStoreAt(io.root());
  }
  TRY(text);
  const std::string version = ValueOf(*text, kMagic);
  if (!FitsChecksum(*text)) {
    return Status(Code::kCorrupt, io.root() +
                                      "/FORMAT is damaged: its checksum does not fit. "
                                      "Restore this file from a copy of the store");
  }
  if (version != std::to_string(kVersion)) {
    return Status(Code::kUnknownFormat,
                  fmt::format("{} has format version '{}'; this program knows version {}. Use the "
                              "memoirfs that made it, or a newer one",
                              io.root(), version, kVersion));
  }
  if (const std::string features = ValueOf(*text, "features"); !features.empty()) {
    return Status(Code::kUnknownFormat, io.root() +
                                            " needs features that this program does not "
                                            "have: " +
                                            features);
  }
  return StoreFormat{ValueOf(*text, "id")};
}

Result<uint32_t> ReadNextStream(FileIo& io) {
  const Result<Bytes> text = ReadWholeFile(io, kStreamsFile);
  if (text.code() == Code::kNotFound) return uint32_t{1};
  TRY(text);
  if (!FitsChecksum(*text)) {
    return Status(Code::kCorrupt, io.root() + "/" + kStreamsFile +
                                      " is damaged: its checksum does not fit. Restore this file "
                                      "from a copy of the store; without it, a new agent may get "
                                      "the number of one that was purged");
  }
  if (const std::string version = ValueOf(*text, kStreamsMagic);
      version != std::to_string(kVersion)) {
    return Status(Code::kUnknownFormat, io.root() + "/" + kStreamsFile + " has version '" +
                                            version + "': open the store with a newer memoirfs");
  }
  const std::string next = ValueOf(*text, "next");
  return static_cast<uint32_t>(std::strtoul(next.c_str(), nullptr, 10));
}

Status WriteNextStream(FileIo& io, uint32_t next) {
  const std::string body = fmt::format("{} {}\nnext {}\n", kStreamsMagic, kVersion, next);
  return WriteFileAtomically(io, kStreamsFile, WithChecksum(body));
}

}  // namespace memoirfs::volume
