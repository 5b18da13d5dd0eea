#include "store/volume/verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/chain/verifier.h"

namespace memoirfs::volume {

Result<VerifyReport> VerifyVolume(Volume& volume, const VerifyRequest& request,
                                  const ProgressListener& progress) {
  return Verifier(volume.impl(), request, progress).Run();
}

Status Verifier::Tell(const std::string& what, uint64_t done, uint64_t total) {
  if (!progress_ || progress_(VerifyProgress{what, done, total})) return {};
  return Status(Code::kInterrupted, "the verification was ended before it was done");
}

void Verifier::Count(uint64_t VerifyReport::*what, uint64_t n) {
  const MutexLock lock(mutex_);
  report_.*what += n;
}

void Verifier::Problem(VerifyProblem problem) {
  const MutexLock lock(mutex_);
  report_.problems.push_back(std::move(problem));
}

Result<std::vector<Stream*>> Verifier::ChosenStreams() const {
  std::vector<Stream*> streams = v_.Streams();
  if (!request_.agent) return streams;
  for (Stream* const stream : streams) {
    if (stream->agent == *request_.agent) return std::vector<Stream*>{stream};
  }
  return Status(Code::kNotFound, "there is no agent '" + *request_.agent + "'");
}

Result<VerifyReport> Verifier::Run() {
  ASSIGN_OR_RETURN(const std::vector<Stream*> streams, ChosenStreams());
  // What was done before this moment is verified; records come through the segments.
  if (!v_.journal_->failed()) TRY(v_.WriteOutAll());
  TellUnrecorded(streams);
  if (!request_.agent) TRY(CheckNoOtherChains());
  for (size_t i = 0; i < streams.size(); ++i) {
    TRY(Tell("chains", i, streams.size()));
    Count(&VerifyReport::streams);
    TRY(CheckHead(*streams[i]));
    if (request_.level >= VerifyLevel::kChains) TRY(CheckChain(*streams[i]));
    if (request_.level >= VerifyLevel::kIndex) TRY(CheckIndex(*streams[i]));
  }
  if (request_.level >= VerifyLevel::kObjects) TRY(CheckObjects(streams));
  const MutexLock lock(mutex_);
  return report_;
}

// What a read-only opening found: its copy is mended already, the store is not.
void Verifier::TellUnrecorded(const std::vector<Stream*>& streams) {
  for (const auto& [owner, finding] : v_.unrecorded_) {
    const auto is_owner = [id = owner](const Stream* stream) { return !id || stream->id == *id; };
    if (request_.agent && std::none_of(streams.begin(), streams.end(), is_owner)) continue;
    Problem({finding.what, finding.where, finding.expected, finding.found});
  }
}

Status Verifier::CheckNoOtherChains() {
  ASSIGN_OR_RETURN(const auto names, v_.io_.List(chain::kChainsDirectory));
  for (const std::string& name : names) {
    const auto stream = chain::StreamOfName(name);
    if (stream && (v_.FindStream(*stream).ok() || v_.purged_.load() == *stream)) continue;
    Problem({"chain", std::string(chain::kChainsDirectory) + "/" + name,
             "a chain of an agent of this store", "one that no agent has"});
  }
  return {};
}

Status Verifier::CheckHead(const Stream& stream) {
  const MutexLock lock(stream.mutex);
  if (request_.level == VerifyLevel::kHeads) Count(&VerifyReport::records, stream.head.seq.value);
  if (!stream.read_only_reason.empty()) {
    Problem({"chain", "agent " + stream.agent, "a chain that can be continued",
             stream.read_only_reason});
  }
  return {};
}

Status Verifier::CheckChain(const Stream& stream) {
  const chain::Head head = HeadOf(stream);
  chain::ChainVerifier chain;
  Digest at_head;
  const Status read = chain::ForEachLine(v_.io_, stream.id, [&](uint64_t, std::string_view line) {
    chain.Add(line);
    if (chain.count() == head.seq.value) at_head = chain.head();
    if (chain.count() % kRecordsPerTell != 0) return Status();
    return Tell("chain of " + stream.agent, chain.count(), head.seq.value);
  });
  if (read.code() == Code::kInterrupted) return read;
  const std::string where = "agent " + stream.agent + ", " + chain::ChainDirectory(stream.id);
  if (!read.ok()) Problem({"chain", where, "readable segments", read.ToString()});
  for (const std::string& text : chain.problems()) {
    Problem({"record", where, "an unbroken chain", text});
  }
  Count(&VerifyReport::records, chain.count());
  if (const Seq last = HeadOf(stream).seq; chain.count() > last.value) {
    Problem({"record", where, fmt::format("{} records, and nothing more", last.value),
             fmt::format("{} records", chain.count())});
  }
  TRY(CheckChainEnd(stream, where));
  if (chain.count() < head.seq.value) {
    Problem({"record", where, fmt::format("{} records", head.seq.value),
             fmt::format("{} records", chain.count())});
  } else if (chain.intact() && at_head != head.hash) {
    Problem({"record", fmt::format("{}, record {}", where, head.seq.value), head.hash.ToHex(),
             at_head.ToHex()});
  }
  return {};
}

// Nobody writes to the segments meanwhile.
Status Verifier::CheckChainEnd(const Stream& stream, const std::string& where) {
  const MutexLock lock(v_.checkpoint_mutex_);
  const auto end = chain::FindEnd(v_.io_, stream.id);
  if (!end.ok() || end->unfinished == 0) return {};  // what cannot be read was reported
  Problem({"chain", where, "a chain that ends with a line",
           fmt::format("{} bytes behind the last line", end->unfinished)});
  return {};
}

}  // namespace memoirfs::volume
