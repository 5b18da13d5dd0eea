#pragma once

// Intents: unsynced notes of what is about to be recorded, so that a crash of the daemon keeps an
// empty new file and a truncation. The record swallows its intent; recovery turns what is left
// over into a record. Payload of a kIntent frame: store/FORMAT.md "Intents".

#include <cstdint>
#include <string>

#include "store/base/attributes.h"
#include "store/base/bytes.h"
#include "store/base/status.h"
#include "store/base/types.h"
#include "store/chain/record.h"

namespace memoirfs::volume {

struct Intent {
  enum class Kind : uint8_t {
    kCreate = 1,    // parent, name, cookie, attributes, actor
    kTruncate = 2,  // size
    kCancel = 3,    // the file was removed before it was committed
  };
  Kind kind{};
  StreamId stream;
  InodeId ino;
  InodeId parent;
  std::string name;
  Cookie cookie;
  Attributes attributes;
  chain::Actor actor;
  uint64_t size = 0;

  Bytes Encode() const;
  static Result<Intent> Decode(ByteView payload);  // kCorrupt
};

}  // namespace memoirfs::volume
