// SPDX-License-Identifier: Apache-2.0
//
// Checks that, once connections are established, no call of the thread that moves data allocates
// memory, takes a lock or enters the kernel. It runs the shipped plugin with default settings over
// nullverbs. It counts heap calls and locks itself. For system calls it marks where each phase
// begins and ends, which syscalls_test.py finds in strace's output.
//
//   steady PLUGIN NULLVERBS ABI
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <string>

#include "tests/plugin/steady/watch.h"
#include "tests/support/must.h"
#include "tests/support/one_thread/setup.h"
#include "tests/support/one_thread/traffic.h"

namespace beeline::test {
namespace {

using bench::Pattern;

// Marks a place in the trace by a system call with this text as a path. No such file exists.
void mark(const std::string& text) { (void)::access(("steady " + text).c_str(), F_OK); }

Asked watched(const std::string& phase, const std::function<void()>& work) {
  mark("begin: " + phase);
  const Asked before = asked();
  work();
  const Asked after = asked();
  mark("end: " + phase);
  return after - before;
}

void print(const std::string& phase, const Asked& count) {
  fmt::print("  {:<40}{:>7} heap{:>7} maps{:>7} locks{:>7} syscall()\n", phase, count.heap,
             count.maps, count.locks, count.direct);
}

// Checks that the counters count, both here and in the plugin.
void prove_counters(const Asked& connecting) {
  std::mutex lock;
  const Asked own = watched("control", [&] {
    void* volatile memory = std::malloc(16);
    std::free(memory);
    delete new std::string(100, 'x');
    const std::lock_guard held(lock);
    (void)::syscall(39);  // getpid
  });
  print("control: this program on purpose", own);
  print("control: the plugin while connecting", connecting);
  BL_MUST(own.heap == 6 && own.locks == 2 && own.direct == 1);
  BL_MUST(connecting.heap > 0 && connecting.locks > 0);
}

class Steady {
 public:
  Steady(nccl::Net& net, const bench::CommPair& pair) : net_(net), pair_(pair) {}

  void check(Pattern pattern, std::size_t bytes) {
    const bench::Buffers buffers(bytes);
    bench::Traffic traffic(net_, pair_, buffers);
    const std::size_t count = bytes > 64'000 ? 64 : 2048;
    traffic.run(pattern, count);  // the first messages may allocate
    const std::string phase = fmt::format("{}, {} bytes", bench::name_of(pattern), bytes);
    const Asked count_of_phase = watched(phase, [&] { traffic.run(pattern, count); });
    print(phase, count_of_phase);
    if (count_of_phase.all() != 0) ++unsteady_;
  }

  int unsteady() const noexcept { return unsteady_; }

 private:
  nccl::Net& net_;
  const bench::CommPair pair_;
  int unsteady_ = 0;
};

int run(const std::string& plugin, const std::string& verbs, int abi) {
  nccl::Net net = bench::load(plugin, verbs, abi);
  bench::CommPair pair;
  const Asked connecting = watched("connecting", [&] { pair = bench::connect(net); });
  fmt::print("Through v{}, of the thread that calls:\n", abi);
  prove_counters(connecting);
  Steady steady(net, pair);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{512} << 10}) {
    for (const Pattern pattern :
         {Pattern::kOneAtATime, Pattern::kWindow, Pattern::kBatches, Pattern::kGroups}) {
      steady.check(pattern, bytes);
    }
  }
  steady.check(Pattern::kEmptyTests, 8);
  steady.check(Pattern::kNoCredit, 8);
  bench::close(net, pair);
  if (steady.unsteady() == 0) return 0;
  fmt::print("{} phases are not steady\n", steady.unsteady());
  return 1;
}

}  // namespace
}  // namespace beeline::test

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: steady PLUGIN NULLVERBS ABI\n", stderr);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return beeline::test::run(argv[1], argv[2], std::atoi(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "steady: %s\n", error.what());
    return 1;
  }
}
