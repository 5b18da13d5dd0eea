#pragma once

// Small helpers of the scenarios: calls that throw a Violation for each errno that is not allowed.

#include <initializer_list>
#include <string>

namespace memoirfs::stress {

// True when the call worked, false for an allowed errno.
bool Allowed(bool worked, const std::string& what, std::initializer_list<int> errnos = {});

// The whole file; false where it does not exist.
bool ReadFile(const std::string& path, std::string* content);

// Creates or truncates, writes, closes.
void WriteFile(const std::string& path, const std::string& content);

// Content that tells whether it is whole: a header with length and seed, and bytes made of them.
std::string MakeVersion(uint64_t seed, size_t size);
void CheckVersion(const std::string& path, const std::string& content);

}  // namespace memoirfs::stress
