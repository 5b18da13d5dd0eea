#include "tests/e2e/parity/sabotage.h"

#include <array>
#include <stdexcept>

namespace memoirfs::parity {
namespace {

struct Mistake {
  std::string_view name;
  Sabotage make;
};

Step With(const Step& step, size_t index, const std::string& argument) {
  Step other = step;
  if (index < other.arguments.size()) other.arguments[index] = argument;
  return other;
}

constexpr std::array kMistakes = {
    // A mode that is not quite the one asked for.
    Mistake{"chmod-drops-sticky",
            [](const Step& step) -> std::optional<Step> {
              return step.call == "chmod" && step.arguments[1] == "01777" ? With(step, 1, "0777")
                                                                          : step;
            }},
    // A change that is acknowledged and not made.
    Mistake{"setxattr-does-nothing",
            [](const Step& step) -> std::optional<Step> {
              if (step.call == "setxattr" && step.arguments[3] == "0") return std::nullopt;
              return step;
            }},
    // A call that should leave a time alone.
    Mistake{"omit-is-now",
            [](const Step& step) -> std::optional<Step> {
              return step.call == "utimens" && step.arguments[2] == "omit" ? With(step, 2, "now")
                                                                           : step;
            }},
    // Content that is wrong with the right length.
    Mistake{"pwrite-other-bytes",
            [](const Step& step) -> std::optional<Step> {
              if (step.call != "pwrite") return step;
              const std::string& data = step.arguments[1];
              return With(step, 1, data.substr(0, data.find(':')) + ":4711");
            }},
    // A flag that is ignored.
    Mistake{"rename-replaces",
            [](const Step& step) -> std::optional<Step> {
              return step.call == "rename" && step.arguments[2] == "RENAME_NOREPLACE"
                         ? With(step, 2, "0")
                         : step;
            }},
    // Permission that is not checked.
    Mistake{"everybody-is-root",
            [](const Step& step) -> std::optional<Step> {
              Step other = step;
              other.user = 0;
              return other;
            }},
};

}  // namespace

Sabotage FindSabotage(const std::string& name) {
  if (name.empty()) return nullptr;
  for (const Mistake& mistake : kMistakes) {
    if (mistake.name == name) return mistake.make;
  }
  throw std::invalid_argument("no sabotage of this name: " + name);
}

std::vector<std::string_view> SabotageNames() {
  std::vector<std::string_view> names;
  for (const Mistake& mistake : kMistakes) names.push_back(mistake.name);
  return names;
}

}  // namespace memoirfs::parity
