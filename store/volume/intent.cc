#include "store/volume/intent.h"

#include "store/base/coding.h"
#include "store/meta/schema.h"

namespace memoirfs::volume {

Bytes Intent::Encode() const {
  Encoder out;
  out.U8(static_cast<uint8_t>(kind)).U32(stream.value).U64(ino.value);
  if (kind == Kind::kCreate) {
    out.U64(parent.value).String(name).U64(cookie.value);
    meta::EncodeAttributes(out, attributes);
    out.U32(actor.uid).U32(actor.gid).U32(static_cast<uint32_t>(actor.pid)).String(actor.comm);
  }
  if (kind == Kind::kTruncate) out.U64(size);
  return out.Take();
}

Result<Intent> Intent::Decode(ByteView payload) {
  Decoder in(payload);
  Intent intent;
  intent.kind = static_cast<Kind>(in.U8());
  intent.stream = StreamId(in.U32());
  intent.ino = InodeId(in.U64());
  switch (intent.kind) {
    case Kind::kCreate:
      intent.parent = InodeId(in.U64());
      intent.name = in.String();
      intent.cookie = Cookie(in.U64());
      intent.attributes = meta::DecodeAttributes(in);
      intent.actor.uid = in.U32();
      intent.actor.gid = in.U32();
      intent.actor.pid = static_cast<int32_t>(in.U32());
      intent.actor.comm = in.String();
      break;
    case Kind::kTruncate:
      intent.size = in.U64();
      break;
    case Kind::kCancel:
      break;
    default:
      return Status(Code::kCorrupt, "an intent of an unknown kind");
  }
  if (!in.Done()) return Status(Code::kCorrupt, "an intent of the wrong length");
  return intent;
}

}  // namespace memoirfs::volume
