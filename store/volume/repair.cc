#include "store/volume/repair.h"

#include "store/volume/layout.h"

namespace memoirfs::volume {

Result<RepairReport> RepairStore(FileIo& io, Clock& clock, VolumeOptions options) {
  TRY(ReadFormat(io));
  TRY(CheckDirectories(io));  // before anything of the store is changed
  TRY(WriteFileAtomically(io, kRebuildMarker, kRepairAskedFor));
  options.background = false;
  ASSIGN_OR_RETURN(const auto volume, Volume::Open(io, clock, options));
  RepairReport report;
  for (const AgentFacts& agent : volume->ListAgents()) report.records += agent.head.seq.value;
  ASSIGN_OR_RETURN(const auto kept, io.List("quarantine"));
  for (const std::string& name : kept) {
    const bool is_chain = name.ends_with(".jsonl");
    report.notes.push_back("quarantine/" + name +
                           (is_chain ? " is a chain's segment as it was found damaged"
                                     : " holds what a crash left unfinished"));
  }
  return report;
}

}  // namespace memoirfs::volume
