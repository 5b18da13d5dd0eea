#include "tests/e2e/parity/content.h"

#include <cctype>
#include <functional>
#include <stdexcept>

#include "tests/e2e/native/random.h"
#include "tests/e2e/parity/step.h"

namespace memoirfs::parity {

std::string Data(const std::string& argument) {
  if (!argument.empty() && argument[0] == '=') return Expand(argument.substr(1));
  const size_t colon = argument.find(':');
  if (colon == std::string::npos) throw std::invalid_argument("not LENGTH:SEED: " + argument);
  return e2e::Pattern(std::stoull(argument.substr(colon + 1)), std::stoull(argument));
}

std::string Describe(std::string_view bytes) {
  constexpr size_t kShort = 12;
  std::string text = std::to_string(bytes.size()) + " bytes";
  if (bytes.size() > kShort)
    return text + " #" + std::to_string(std::hash<std::string_view>()(bytes));
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    text += ' ';
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

}  // namespace memoirfs::parity
