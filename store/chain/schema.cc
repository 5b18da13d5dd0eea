#include "store/chain/schema.h"

#include <algorithm>

namespace memoirfs::chain {
namespace {

// In the words of JSON Schema, of which the format uses type, const, enum, required, properties
// and items.
constexpr char kSchemaText[] = R"({
  "type": "object",
  "required": ["schema_version", "record_id", "session_id", "ts", "action", "integrity"],
  "properties": {
    "schema_version": {"type": "string", "const": "0.1"},
    "record_id": {"type": "string"},
    "session_id": {"type": "string"},
    "parent_id": {"type": "string"},
    "ts": {"type": "string"},
    "subject": {"type": "object", "properties": {
      "id": {"type": "string"}, "name": {"type": "string"}}},
    "principal": {"type": "object", "properties": {
      "human_id": {"type": "string"}, "creator_id": {"type": "string"},
      "service_account": {"type": "string"}, "role_scope": {"type": "string"}}},
    "agent": {"type": "object", "properties": {
      "id": {"type": "string"}, "name": {"type": "string"}, "version": {"type": "string"},
      "model": {"type": "string"}, "model_version": {"type": "string"}}},
    "authority": {"type": "object", "properties": {
      "snapshot_id": {"type": "string"}, "same_as_previous": {"type": "boolean"},
      "captured_at": {"type": "string"}, "scope": {"type": "string"},
      "workspace": {"type": "object", "properties": {
        "path_hash": {"type": "string"}, "git_remote_hash": {"type": "string"},
        "git_commit": {"type": "string"}, "worktree_hash": {"type": "string"}}},
      "refs": {"type": "array", "items": {"type": "object", "properties": {
        "kind": {"type": "string"}, "id": {"type": "string"}, "uri": {"type": "string"},
        "hash": {"type": "string"}, "version": {"type": "string"}, "loaded": {"type": "boolean"},
        "truncated": {"type": "boolean"}, "shadowed_by": {"type": "string"}}}},
      "omissions": {"type": "array", "items": {"type": "object", "properties": {
        "kind": {"type": "string"}, "reason": {"type": "string"}, "hash": {"type": "string"}}}},
      "capture_limits": {"type": "array", "items": {"type": "string"}},
      "stale_if": {"type": "array", "items": {"type": "string"}}}},
    "mcp": {"type": "object", "properties": {
      "host": {"type": "string"}, "client": {"type": "string"}, "server": {"type": "string"},
      "server_version": {"type": "string"}}},
    "action": {"type": "object", "required": ["type", "category"], "properties": {
      "type": {"type": "string",
               "enum": ["tool_call", "agent_message", "read", "write", "network"]},
      "category": {"type": "string", "enum": ["security", "safety", "reliability", "privacy"]},
      "tool": {"type": "string"},
      "authorization": {"type": "object", "properties": {
        "decision": {"type": "string", "enum": ["allowed", "denied", "human_approved"]},
        "scope": {"type": "string"}, "approver": {"type": "string"}}},
      "input": {"type": "object", "properties": {
        "summary": {"type": "string"}, "hash": {"type": "string"}}}}},
    "outcome": {"type": "object", "properties": {
      "status": {"type": "string", "enum": ["ok", "error", "denied"]},
      "summary": {"type": "string"}, "hash": {"type": "string"}}},
    "findings": {"type": "array", "items": {
      "type": "object", "required": ["type", "severity"], "properties": {
        "type": {"type": "string"},
        "severity": {"type": "string", "enum": ["CRITICAL", "HIGH", "MEDIUM", "LOW", "INFO"]},
        "sample": {"type": "string"}}}},
    "severity": {"type": "string", "enum": ["CRITICAL", "HIGH", "MEDIUM", "LOW", "INFO"]},
    "threats": {"type": "array", "items": {
      "type": "object", "required": ["type"], "properties": {
        "type": {"type": "string"}, "ref": {"type": "string"}}}},
    "verification": {"type": "object", "required": ["status"], "properties": {
      "status": {"type": "string", "enum": ["allowed", "blocked", "modified", "unverified"]},
      "verifier": {"type": "string"}, "policy_ref": {"type": "string"},
      "checked_at": {"type": "string"}}},
    "data": {"type": "object", "properties": {
      "region": {"type": "string"}, "cross_region": {"type": "number"},
      "purpose": {"type": "string"},
      "pii_types": {"type": "array", "items": {"type": "string"}}}},
    "retention": {"type": "object", "properties": {
      "policy": {"type": "string"}, "expires": {"type": "string"}}},
    "jurisdiction": {"type": "string"},
    "source": {"type": "object", "properties": {
      "adapter": {"type": "string"}, "via": {"type": "string"},
      "capture": {"type": "string", "enum": ["captured", "ingested"]}}},
    "framework_tags": {"type": "array", "items": {"type": "string"}},
    "integrity": {"type": "object", "required": ["alg", "canon", "prev_hash", "hash"],
      "properties": {
        "alg": {"type": "string", "enum": ["sha-256"]},
        "canon": {"type": "string", "enum": ["rfc8785"]},
        "prev_hash": {"type": "string"}, "hash": {"type": "string"}}},
    "signature": {"type": "object", "required": ["alg", "sig"], "properties": {
      "alg": {"type": "string", "enum": ["ecdsa-p256", "ed25519"]},
      "sig": {"type": "string"}, "key_id": {"type": "string"}}}
  }
})";

const Json& Schema() {
  static const Json kSchema = Json::parse(kSchemaText);
  return kSchema;
}

constexpr size_t kMaxProblems = 100;

// Values of a file that may be hostile go into messages whole only when they are short.
std::string Shown(const Json& value) {
  constexpr size_t kMaxShown = 80;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text.replace(kMaxShown, text.npos, "...");
  return text;
}

bool ContainsValue(const Json& values, const Json& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The schema's name of a value's type: the library's, which has one for all numbers too.
bool Fits(const Json& value, const std::string& type) { return value.type_name() == type; }

void Check(const Json& value, const Json& schema, const std::string& path,
           std::vector<std::string>* problems);

void CheckMembers(const Json& object, const Json& schema, const std::string& path,
                  std::vector<std::string>* problems) {
  if (const auto required = schema.find("required"); required != schema.end()) {
    for (const Json& key : *required) {
      if (object.contains(key.get_ref<const std::string&>())) continue;
      problems->push_back(path + ": missing required field " + key.dump());
    }
  }
  const auto properties = schema.find("properties");
  if (properties == schema.end()) return;
  for (const auto& [key, property] : properties->items()) {
    const auto member = object.find(key);
    if (member != object.end()) Check(*member, property, path + "." + key, problems);
  }
}

void CheckItems(const Json& array, const Json& schema, const std::string& path,
                std::vector<std::string>* problems) {
  const auto items = schema.find("items");
  if (items == schema.end()) return;
  for (size_t i = 0; i < array.size(); ++i) {
    Check(array[i], *items, path + "[" + std::to_string(i) + "]", problems);
  }
}

void Check(const Json& value, const Json& schema, const std::string& path,
           std::vector<std::string>* problems) {
  if (problems->size() >= kMaxProblems) return;
  if (const auto expected = schema.find("const"); expected != schema.end() && value != *expected) {
    problems->push_back(path + ": expected " + expected->dump() + ", got " + Shown(value));
  }
  if (const auto values = schema.find("enum");
      values != schema.end() && !ContainsValue(*values, value)) {
    problems->push_back(path + ": " + Shown(value) + " is not one of " + values->dump());
  }
  if (const auto& type = schema.at("type").get_ref<const std::string&>(); !Fits(value, type)) {
    problems->push_back(path + ": expected " + type + ", got " + value.type_name());
    return;
  }
  if (value.is_object()) CheckMembers(value, schema, path, problems);
  if (value.is_array()) CheckItems(value, schema, path, problems);
}

}  // namespace

std::vector<std::string> CheckSchema(const Json& record) {
  std::vector<std::string> problems;
  Check(record, Schema(), "record", &problems);
  return problems;
}

}  // namespace memoirfs::chain
