#pragma once

// The schema of Runtime Records v0.1. Private to store/chain.

#include <string>
#include <vector>

#include "store/base/json.h"

namespace memoirfs::chain {

// What of `record` does not fit the schema, each as "<path>: <what>". Unknown members
// fit. At most about 100 are listed.
std::vector<std::string> CheckSchema(const Json& record);

}  // namespace memoirfs::chain
