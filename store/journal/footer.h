#pragma once

// The footer that turns a file of frames into a pack. Byte layout: store/FORMAT.md "Packs".

#include <cstdint>
#include <string_view>

#include "store/base/file_io.h"
#include "store/journal/pack.h"

namespace memoirfs::journal {

// What a footer starts with.
inline constexpr ByteView kFooterMagic{"\xF7MFOOT\r\n", 8};

// Lists one frame in its pack's contents; not one whose payload is too short for its type.
void AddToContents(const Location& where, ByteView payload, PackContents& contents);

// The contents of the frames before `frames_end`, all of which were synced.
Result<PackContents> CollectContents(File& file, PackId pack, uint64_t frames_end);

// Copies the first `size` bytes of a file; kCorrupt when it is shorter.
Status CopyStart(const File& from, File& to, uint64_t size);

// Writes the footer behind the frames, cuts the file there, and syncs it.
Status WriteFooter(File& file, PackId pack, uint64_t frames_end, PackContents contents);

// Makes the synced journal `number`, whose frames end at `frames_end`, a pack where it lies.
Status SealInPlace(FileIo& io, File& log, uint64_t number, uint64_t frames_end);

// kCorrupt, saying what is wrong, when the footer is not exactly what was written.
Result<PackContents> ReadFooter(const File& file, PackId pack);

}  // namespace memoirfs::journal
