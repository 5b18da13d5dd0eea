#include "store/base/json.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "store/base/file_name.h"
#include "store/base/json_writer.h"

namespace memoirfs {
namespace {

Status Refused(std::string_view what) {
  return Status(Code::kInvalidArgument, std::string("not valid JSON: ").append(what));
}

// Builds the tree from the parser's events, and refuses what the parser itself would let through.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(int max_depth) : max_depth_(static_cast<size_t>(std::max(max_depth, 0))) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string& /*text*/) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) override { return Fail("binary value"); }
  bool start_object(size_t /*size*/) override { return Open(Json::object()); }
  bool start_array(size_t /*size*/) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    const auto [member, is_new] = members.try_emplace(std::move(name), nullptr);
    if (!is_new) return Fail("duplicate key '" + member->first + "'");
    slot_ = &member->second;
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const Json::exception& error) override {
    const std::string_view text = error.what();
    const size_t prefix = text.find("] ");  // the library's name of the exception
    const std::string_view reason =
        prefix == std::string_view::npos ? text : text.substr(prefix + 2);
    return Fail("byte " + std::to_string(position) + ": " + std::string(reason));
  }

  Result<Json> Take() {
    if (!failure_.ok()) return failure_;
    return std::move(root_);
  }

 private:
  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (Json& parent = *open_.back(); parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json container) {
    if (open_.size() >= max_depth_) {
      return Fail("more than " + std::to_string(max_depth_) + " levels");
    }
    open_.push_back(Place(std::move(container)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Fail(const std::string& what) {
    if (failure_.ok()) failure_ = Refused(what);
    return false;
  }

  const size_t max_depth_;
  Json root_;
  std::vector<Json*> open_;  // containers, outermost first
  Json* slot_ = nullptr;     // of the last key
  Status failure_;
};

// Whether `a` comes before `b` in UTF-16 code units. UTF-8 orders by code point, which differs
// only between U+E000..U+FFFF (lead bytes EE, EF) and what is above (F0..F4), which UTF-16 writes
// with surrogates (D800..DFFF).
bool Utf16Less(std::string_view a, std::string_view b) {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end()) return x == a.end() && y != b.end();
  const auto left = static_cast<unsigned char>(*x);
  const auto right = static_cast<unsigned char>(*y);
  if (left >= 0xee && right >= 0xee && (left >= 0xf0) != (right >= 0xf0)) return left >= 0xf0;
  return left < right;
}

Status AppendValue(const Json& value, std::string* out);

Status AppendString(const std::string& text, std::string* out) {
  if (!IsValidUtf8(text)) return Status(Code::kInvalidArgument, "a string is not valid UTF-8");
  AppendJsonString(text, out);
  return {};
}

Status AppendDouble(double value, std::string* out) {
  // Also false for what is not a number.
  if (!(std::abs(value) <= static_cast<double>(kMaxJsonInteger)) || value != std::trunc(value)) {
    return Status(Code::kInvalidArgument,
                  "a number is not an integer between -(2^53 - 1) and 2^53 - 1");
  }
  *out += std::to_string(static_cast<int64_t>(value));
  return {};
}

Status AppendInteger(const Json& value, std::string* out) {
  constexpr auto kLimit = static_cast<int64_t>(kMaxJsonInteger);
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= kMaxJsonInteger
                        : value.get<int64_t>() >= -kLimit && value.get<int64_t>() <= kLimit;
  if (!fits) {
    return Status(Code::kInvalidArgument, "the absolute value of an integer is above 2^53 - 1");
  }
  *out += std::to_string(value.get<int64_t>());
  return {};
}

Status AppendArray(const Json& array, std::string* out) {
  *out += '[';
  bool first = true;
  for (const Json& element : array) {
    if (!std::exchange(first, false)) *out += ',';
    TRY(AppendValue(element, out));
  }
  *out += ']';
  return {};
}

// Members as they are kept are sorted by UTF-8: for nearly every object that is right already.
Status AppendObject(const Json::object_t& object, std::string* out) {
  std::vector<const Json::object_t::value_type*> members;
  members.reserve(object.size());
  for (const auto& member : object) members.push_back(&member);
  const auto before = [](const auto* a, const auto* b) { return Utf16Less(a->first, b->first); };
  if (!std::is_sorted(members.begin(), members.end(), before)) {
    std::sort(members.begin(), members.end(), before);
  }
  *out += '{';
  for (const auto* member : members) {
    if (member != members.front()) *out += ',';
    TRY(AppendString(member->first, out));
    *out += ':';
    TRY(AppendValue(member->second, out));
  }
  *out += '}';
  return {};
}

Status AppendValue(const Json& value, std::string* out) {
  switch (value.type()) {
    case Json::value_t::null:
      *out += "null";
      return {};
    case Json::value_t::boolean:
      *out += value.get<bool>() ? "true" : "false";
      return {};
    case Json::value_t::string:
      return AppendString(value.get_ref<const std::string&>(), out);
    case Json::value_t::number_float:
      return AppendDouble(value.get<double>(), out);
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return AppendInteger(value, out);
    case Json::value_t::array:
      return AppendArray(value, out);
    case Json::value_t::object:
      return AppendObject(value.get_ref<const Json::object_t&>(), out);
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return Status(Code::kInvalidArgument, "a value that JSON does not have");
}

}  // namespace

Result<Json> ParseJson(std::string_view text, int max_depth) {
  // The parser takes NUL for the end of its input, and skips a byte order mark.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    return Refused("byte " + std::to_string(nul) + " is NUL");
  }
  if (text.substr(0, 3) == "\xef\xbb\xbf") return Refused("byte 0: a byte order mark");
  TreeBuilder builder(max_depth);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.Take();
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TextOf(const Json& object, const char* member) {
  return object.value(member, std::string());
}

Result<std::string> Canonicalize(const Json& value) {
  std::string out;
  TRY(AppendValue(value, &out));
  return out;
}

Result<std::string> CanonicalAscii(const Json& value) {
  ASSIGN_OR_RETURN(const std::string canonical, Canonicalize(value));
  std::string out;
  AppendAsAscii(canonical, &out);
  return out;
}

}  // namespace memoirfs
