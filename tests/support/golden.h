#pragma once

// Files under tests/golden. A program that includes this calls memoirfs_uses_golden() in CMake.

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace memoirfs::test {

// The lines of a file, without '\n'.
inline std::vector<std::string> GoldenLines(const std::string& name) {
  std::ifstream in(std::string(MEMOIRFS_GOLDEN_DIR) + "/" + name, std::ios::binary);
  if (!in) throw std::runtime_error("no golden file " + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace memoirfs::test
