#include "store/chain/verifier.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "store/base/json.h"
#include "store/chain/schema.h"

namespace memoirfs::chain {
namespace {

constexpr size_t kMaxProblems = 100;

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

// The text of a member; "None" when there is none, as reports of this format say it.
std::string TextOf(const Json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_string()) return "None";
  return member->get<std::string>();
}

std::string IdOf(const Json& record, const char* key) {
  const auto member = record.find(key);
  return member == record.end() || !member->is_string() ? "" : member->get<std::string>();
}

// The hash that `record` must have after a record with the hash `previous`.
Result<Digest> Recompute(Json record, const Digest& previous) {
  Json& integrity = record["integrity"];
  integrity["prev_hash"] = previous.ToHex();
  integrity.erase("hash");
  ASSIGN_OR_RETURN(const std::string canonical, Canonicalize(record));
  return Sha256::Of(canonical);
}

}  // namespace

void ChainVerifier::Problem(const std::string& text) {
  if (problems_.size() < kMaxProblems) problems_.push_back(text);
}

void ChainVerifier::ProblemOfRecord(std::string_view text) {
  Problem("record " + std::to_string(count_) + ": " + std::string(text));
}

void ChainVerifier::Break() {
  if (broken_at_ == 0) broken_at_ = count_;
}

void ChainVerifier::Add(std::string_view line) {
  if (IsBlank(line)) return;
  ++count_;
  if (broken_at_ != 0 && count_ == broken_at_ + 1) {
    Problem("chain: record " + std::to_string(count_) + " onward is not verifiable: behind the " +
            "break at record " + std::to_string(broken_at_) +
            " records can be shown neither intact nor altered");
  }
  Result<Json> record = ParseJson(line);
  if (!record.ok()) {
    ProblemOfRecord(record.status().message());
    return Break();
  }
  for (const std::string& problem : CheckSchema(*record)) ProblemOfRecord("schema: " + problem);
  if (!record->is_object() || !record->contains("integrity") ||
      !record->at("integrity").is_object()) {
    return Break();  // the schema said it
  }
  const std::string declared_prev = TextOf(record->at("integrity"), "prev_hash");
  const std::string declared_hash = TextOf(record->at("integrity"), "hash");
  NoteIds(IdOf(*record, "record_id"), IdOf(*record, "parent_id"));
  const Result<Digest> recomputed = Recompute(*std::move(record), previous_);
  if (!recomputed.ok()) {
    ProblemOfRecord("chain: no hash can be computed: " + recomputed.status().message());
    return Break();
  }
  if (broken_at_ == 0) CheckLinks(declared_prev, declared_hash, *recomputed);
  previous_ = *recomputed;
}

void ChainVerifier::CheckLinks(const std::string& declared_prev, const std::string& declared_hash,
                               const Digest& recomputed) {
  if (declared_prev != previous_.ToHex()) {
    ProblemOfRecord("chain: prev_hash " + declared_prev + " does not match expected " +
                    previous_.ToHex());
    Break();
  }
  if (declared_hash != recomputed.ToHex()) {
    ProblemOfRecord("chain: hash " + declared_hash + " does not match recomputed " +
                    recomputed.ToHex());
    Break();
  }
}

void ChainVerifier::NoteIds(const std::string& record_id, const std::string& parent_id) {
  const std::hash<std::string> hash;
  if (!parent_id.empty()) {
    ++parent_links_;
    if (seen_ids_.count(hash(parent_id)) == 0) ++unresolved_parents_;
  }
  if (!record_id.empty()) seen_ids_.insert(hash(record_id));
}

}  // namespace memoirfs::chain
