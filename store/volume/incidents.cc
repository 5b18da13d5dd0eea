// Objects that did not verify are met by readers, who wait for nothing: they are noted, and the
// committer writes the records. An object does not know who refers to it, so the rows of the index
// are gone through, once for all that is noted.

#include "store/volume/incidents.h"

#include <map>
#include <unordered_map>

#include "store/base/file_name.h"
#include "store/base/json.h"
#include "store/base/log.h"
#include "store/cas/chunk_tree.h"
#include "store/volume/volume_impl.h"

namespace memoirfs::volume {
namespace {

constexpr size_t kMaxFindings = 32;  // of one record
constexpr size_t kMaxText = 400;     // bytes of a member

std::string Shown(const std::string& text) { return EscapeInvalidUtf8(text.substr(0, kMaxText)); }

// The inodes of one stream that refer to objects, one for each object.
class Referrers {
 public:
  Referrers(cas::ObjectStore& objects, const std::vector<ObjectIncident>& incidents)
      : objects_(objects) {
    for (const ObjectIncident& incident : incidents) wanted_.insert(incident.digest);
  }

  void Add(InodeId ino, const ContentId& content) {
    if (wanted_.count(content.digest) != 0) found_.emplace(content.digest, ino);
    if (content.kind == ContentKind::kTree) trees_.emplace(content, ino);
  }

  // Trees are gone through only as long as something was not met.
  const std::unordered_map<Digest, InodeId>& Resolve() {
    for (const auto& [content, ino] : trees_) {
      if (found_.size() == wanted_.size()) break;
      const Status read = cas::ChunkTree::ForEachObject(
          objects_, content, [&, owner = ino](const Digest& digest, bool, uint64_t) {
            if (wanted_.count(digest) != 0) found_.emplace(digest, owner);
            return Status();
          });
      // A node that does not load is an incident of its own; what is below it belongs to nobody.
      if (!read.ok()) Log(LogLevel::kWarn, "volume.incident", read.ToString());
    }
    return found_;
  }

 private:
  cas::ObjectStore& objects_;
  std::unordered_set<Digest> wanted_;
  std::unordered_map<Digest, InodeId> found_;
  std::map<ContentId, InodeId> trees_;
};

}  // namespace

std::string DetailOf(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    if (list.size() == kMaxFindings) break;
    Json entry{{"what", Shown(finding.what)}, {"where", Shown(finding.where)}};
    if (!finding.expected.empty()) entry["expected"] = Shown(finding.expected);
    if (!finding.found.empty()) entry["found"] = Shown(finding.found);
    list.push_back(std::move(entry));
  }
  Json detail{{"findings", list}};
  if (findings.size() > kMaxFindings) detail["more"] = findings.size() - kMaxFindings;
  return detail.dump();
}

Finding FindingOf(const ObjectIncident& incident) {
  Finding finding{"object", "", incident.digest.ToHex(), incident.what_happened};
  if (incident.where) {
    finding.where =
        journal::PackPath(incident.where->pack) + " at " + std::to_string(incident.where->offset);
  }
  return finding;
}

// A record that says what was found. Nothing is lost where it cannot be written: it was logged.
void Volume::Impl::RecordFindings(Stream& stream, chain::Change change,
                                  const std::vector<Finding>& findings) {
  const MutexLock lock(stream.mutex);
  if (stream.removed || !CheckWritable(stream).ok()) return;
  Commit commit;
  commit.append_class = journal::AppendClass::kReserve;
  commit.change = std::move(change);
  commit.change.detail = DetailOf(findings);
  const Status recorded = Append(stream, std::move(commit));
  if (!recorded.ok()) Log(LogLevel::kWarn, "volume.incident", recorded.ToString());
}

void Volume::Impl::NoteIncident(ObjectIncident incident) {
  const MutexLock lock(queue_mutex_);
  incidents_.push_back(std::move(incident));
}

void Volume::Impl::RecordIncidents() {
  std::vector<ObjectIncident> incidents;
  {
    const MutexLock lock(queue_mutex_);
    incidents.swap(incidents_);
  }
  if (incidents.empty() || options_.read_only) return;
  for (Stream* const stream : Streams()) {
    Referrers referrers(*objects_, incidents);
    const Status read =
        ForEachContent(stream->id, [&](InodeId ino, const ContentId& c) { referrers.Add(ino, c); });
    if (!read.ok()) Log(LogLevel::kWarn, "volume.incident", read.ToString());
    const auto& found = referrers.Resolve();
    for (const ObjectIncident& incident : incidents) {
      const auto owner = found.find(incident.digest);
      if (owner == found.end()) continue;
      chain::Change change;
      change.op = incident.op;
      change.ino = owner->second;
      change.path = tables_->PathOf(stream->id, owner->second);
      RecordFindings(*stream, std::move(change), {FindingOf(incident)});
    }
  }
}

}  // namespace memoirfs::volume
