// Runs a fuzz target without libFuzzer: every file of a corpus, then mutations of them that are the
// same in each run.
//   <target> CORPUS MUTATIONS        runs all
//   <target> CORPUS MUTATIONS ONLY   runs one mutation, which a crash named

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// Which input is running, for the message of a crash: the name of a file, or a mutation's number.
char current[256];

void ReportCrash(int signal) {
  std::fprintf(stderr, "crashed on %s\n", current);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::vector<std::filesystem::path> FilesOf(const std::string& corpus) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void Run(const std::string& input, const std::string& name) {
  std::snprintf(current, sizeof(current), "%s", name.c_str());
  // An allocation of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& inputs) : inputs_(inputs) {}

  // The mutation with this number: the same in each run.
  std::string Make(uint32_t number) {
    random_.seed(number);
    std::string input = inputs_[Below(inputs_.size())];
    for (size_t steps = 1 + Below(4); steps > 0; --steps) Step(input);
    return input;
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void Step(std::string& input) {
    const size_t at = Below(input.size());
    const size_t length = Below(std::min<size_t>(input.size() - at, 32) + 1);
    switch (Below(6)) {
      case 0:
        Set(input, at, input.empty() ? 0 : input[at] ^ (1 << Below(8)));
        break;
      case 1:
        Set(input, at, static_cast<int>(Below(256)));
        break;
      case 2:
        input.erase(at, length);
        break;
      case 3:
        input.insert(at, input.substr(at, length));
        break;
      case 4:
        input.resize(at);
        break;
      default:
        Splice(input, at);
    }
  }
  static void Set(std::string& input, size_t at, int byte) {
    if (at < input.size()) input[at] = static_cast<char>(byte);
  }
  // A piece of another input, over what is there.
  void Splice(std::string& input, size_t at) {
    const std::string& other = inputs_[Below(inputs_.size())];
    const size_t from = Below(other.size());
    const std::string piece = other.substr(from, Below(64));
    input.replace(at, Below(piece.size() + 1), piece);
  }

  const std::vector<std::string>& inputs_;
  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CORPUS MUTATIONS [ONLY]\n", argv[0]);
    return EXIT_FAILURE;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL}) std::signal(signal, ReportCrash);
  const auto only = argc > 3 ? std::optional<uint32_t>(std::stoul(argv[3])) : std::nullopt;
  std::vector<std::string> inputs;
  for (const std::filesystem::path& file : FilesOf(argv[1])) {
    inputs.push_back(Contents(file));
    if (!only) Run(inputs.back(), file.filename());
  }
  if (inputs.empty()) {
    std::fprintf(stderr, "no corpus in %s\n", argv[1]);
    return EXIT_FAILURE;
  }
  Mutator mutator(inputs);
  const auto mutations = static_cast<uint32_t>(std::stoul(argv[2]));
  for (uint32_t i = 0; i < mutations; ++i) {
    if (!only || i == *only) Run(mutator.Make(i), "mutation " + std::to_string(i));
  }
  std::printf("%zu inputs and %u mutations\n", inputs.size(), mutations);
  return EXIT_SUCCESS;
}
