// SPDX-License-Identifier: Apache-2.0
//
// Runs the targets without libFuzzer: the seeds, and then a fixed number of changed seeds, which
// are the same in every run. Used with compilers without libFuzzer, and to measure coverage.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/fuzz/targets.h"

namespace {

using namespace beeline;

constexpr int kRounds = 10'000;  // for each target

class Mutator {
 public:
  fuzz::Bytes change(fuzz::Bytes bytes) {
    const std::size_t changes = 1 + below(4);
    for (std::size_t i = 0; i < changes; ++i) change_once(bytes);
    return bytes;
  }
  std::size_t below(std::size_t limit) { return random_() % limit; }

 private:
  void change_once(fuzz::Bytes& bytes) {
    if (bytes.empty()) return bytes.push_back(any_byte());
    const std::size_t at = below(bytes.size());
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(9)) {
      case 0: return bytes.resize(at);
      case 1: return bytes.push_back(any_byte());
      case 2: bytes.erase(place); return;
      case 3: bytes.insert(place, any_byte()); return;
      case 4: bytes[at] = below(2) == 0 ? std::byte{0} : std::byte{0xff}; return;
      case 5: bytes[at] = bytes[below(bytes.size())]; return;
      case 6: bytes[at] ^= static_cast<std::byte>(1U << below(8)); return;
      case 7: return repeat_part(bytes, at);
      default: bytes[at] = any_byte(); return;
    }
  }
  // Copies a piece, either inserting it or overwriting other bytes.
  void repeat_part(fuzz::Bytes& bytes, std::size_t at) {
    const std::size_t from = below(bytes.size());
    const std::size_t size = std::min<std::size_t>(1 + below(64), bytes.size() - from);
    const fuzz::Bytes part(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                           bytes.begin() + static_cast<std::ptrdiff_t>(from + size));
    if (below(2) == 0 && at + size <= bytes.size()) {
      std::copy(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
    }
  }
  std::byte any_byte() { return static_cast<std::byte>(random_() & 0xff); }

  std::mt19937 random_{1};
};

// Fails if a seed is not accepted.
bool replay(const fuzz::Target& target) {
  const std::vector<fuzz::Bytes> seeds = target.seeds();
  for (const fuzz::Bytes& seed : seeds) {
    if (target.take(seed)) continue;
    std::printf("%-13s does not accept one of its own seeds\n", target.name);
    return false;
  }
  Mutator mutator;
  int taken = 0;
  for (int i = 0; i < kRounds; ++i) {
    const fuzz::Bytes& seed = seeds[mutator.below(seeds.size())];
    if (target.take(mutator.change(seed))) ++taken;
  }
  std::printf("%-13s %zu seeds, %d changed ones, %d of them accepted\n", target.name, seeds.size(),
              kRounds, taken);
  return true;
}

}  // namespace

int main() {
  bool is_good = true;
  for (const fuzz::Target& target : fuzz::all_targets()) is_good = replay(target) && is_good;
  return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
