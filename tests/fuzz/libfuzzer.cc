// SPDX-License-Identifier: Apache-2.0
//
// Runs one target under libFuzzer, after writing its seeds as the initial corpus.
//
//   fuzz_wire --target=connect --seeds=DIR [libFuzzer's options] DIR
#include <cstdint>
#include <fstream>
#include <string>

#include "tests/fuzz/targets.h"

namespace {

using namespace beeline;

const fuzz::Target* target = nullptr;

void write_seeds(const std::string& folder) {
  int number = 0;
  for (const fuzz::Bytes& seed : target->seeds()) {
    std::ofstream file(folder + "/seed" + std::to_string(++number), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<long>(seed.size()));
    fuzz::hold(file.good(), "a seed can be written");
  }
}

// The value of the option, or nothing.
std::string option(int argc, char** argv, const std::string& name) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with(name)) return word.substr(name.size());
  }
  return {};
}

}  // namespace

// libFuzzer ignores options that begin with two dashes.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  target = fuzz::find_target(option(*argc, *argv, "--target="));
  fuzz::hold(target != nullptr, "--target=NAME names a target");
  const std::string folder = option(*argc, *argv, "--seeds=");
  if (!folder.empty()) write_seeds(folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)target->take({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
