#include "tests/e2e/parity/step.h"

#include <sstream>
#include <stdexcept>

namespace memoirfs::parity {
namespace {

// Expands `<text*count>` at `at`; returns the index behind it.
size_t ExpandRepeat(std::string_view argument, size_t at, std::string* out) {
  const size_t star = argument.find('*', at);
  const size_t end = argument.find('>', at);
  if (star == std::string_view::npos || end == std::string_view::npos || star > end) {
    throw std::invalid_argument("not <text*count>: " + std::string(argument));
  }
  const std::string_view text = argument.substr(at + 1, star - at - 1);
  const int count = std::stoi(std::string(argument.substr(star + 1, end - star - 1)));
  for (int i = 0; i < count; ++i) out->append(text);
  return end + 1;
}

}  // namespace

Step ParseStep(std::string_view line) {
  std::istringstream words{std::string(line)};
  Step step;
  words >> step.call;
  if (step.call == "as") {
    words >> step.user >> step.call;
    if (!words) throw std::invalid_argument("no step: " + std::string(line));
  }
  for (std::string word; words >> word;) step.arguments.push_back(word);
  return step;
}

Script ParseScript(std::string_view text) {
  std::istringstream lines{std::string(text)};
  Script script;
  for (std::string line; std::getline(lines, line);) {
    const size_t start = line.find_first_not_of(" \t");
    if (start == std::string::npos || line[start] == '#') continue;
    script.push_back(ParseStep(line));
  }
  return script;
}

std::string Format(const Step& step) {
  std::string line;
  if (step.user != 0) line += "as " + std::to_string(step.user) + " ";
  line += step.call;
  for (const std::string& argument : step.arguments) line += " " + argument;
  return line;
}

std::string Format(const Script& script) {
  std::string text;
  for (const Step& step : script) text += Format(step) + "\n";
  return text;
}

std::string Expand(std::string_view argument) {
  if (argument == "''") return "";
  std::string out;
  for (size_t i = 0; i < argument.size();) {
    if (argument[i] == '<') {
      i = ExpandRepeat(argument, i, &out);
    } else if (argument[i] == '%' && i + 2 < argument.size()) {
      out += static_cast<char>(std::stoi(std::string(argument.substr(i + 1, 2)), nullptr, 16));
      i += 3;
    } else {
      out += argument[i++];
    }
  }
  return out;
}

}  // namespace memoirfs::parity
