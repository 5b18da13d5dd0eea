#include "tests/e2e/parity/minimise.h"

#include <algorithm>

namespace memoirfs::parity {
namespace {

Script Without(const Script& script, size_t from, size_t count) {
  Script rest(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(from));
  const size_t end = std::min(script.size(), from + count);
  rest.insert(rest.end(), script.begin() + static_cast<std::ptrdiff_t>(end), script.end());
  return rest;
}

// Takes away each part of `count` steps that is not needed; true when something went.
bool RemoveParts(size_t count, const std::function<bool(const Script&)>& fails, Script* script) {
  bool shorter = false;
  for (size_t at = 0; at < script->size();) {
    Script candidate = Without(*script, at, count);
    if (!candidate.empty() && fails(candidate)) {
      *script = std::move(candidate);
      shorter = true;
    } else {
      at += count;
    }
  }
  return shorter;
}

}  // namespace

Script Minimise(Script script, const std::function<bool(const Script&)>& fails) {
  for (size_t count = std::max<size_t>(1, script.size() / 2); count > 0;) {
    const bool shorter = RemoveParts(count, fails, &script);
    if (!shorter || count > 1) count /= 2;
  }
  return script;
}

}  // namespace memoirfs::parity
