// SPDX-License-Identifier: Apache-2.0
//
// Checks the hints by which the plugin tells a device that one thread at a time uses a connection.
// The shipped plugin, over nullverbs, must use them where they are supported, work without them
// elsewhere, free all their objects, and never use a connection in two threads at a time.
//
//   hints PLUGIN NULLVERBS CASE
#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <string>
#include <string_view>

#include "tests/support/must.h"
#include "tests/support/one_thread/setup.h"
#include "tests/support/one_thread/traffic.h"

namespace beeline::test {
namespace {

using bench::Pattern;

constexpr std::size_t kPairs = 3;
constexpr std::uint64_t kEnds = 2 * kPairs;

// The objects that kEnds ends create and keep.
struct Case {
  const char* name;
  const char* refused;  // NULLVERBS_REFUSES
  const char* most;     // BEELINE_THREAD_DOMAINS
  std::uint64_t thread_domains;
  std::uint64_t parent_domains;
  std::uint64_t queue_pairs;  // in them
  std::uint64_t cqs;
  std::uint64_t kept;  // thread domains, as long as the ends are there
};
constexpr std::array kCases = {
    Case{"taken", nullptr, nullptr, kEnds, kEnds, kEnds, kEnds, kEnds},
    Case{"limited", nullptr, "4", 4, 4, 4, 4, 4},
    Case{"off", nullptr, "0", 0, 0, 0, 0, 0},
    Case{"no_thread_domains", "td", nullptr, 0, 0, 0, 0, 0},
    Case{"no_parent_domains", "pd", nullptr, kEnds, 0, 0, 0, 0},
    Case{"no_cqs", "cq", nullptr, kEnds, kEnds, kEnds, 0, kEnds},
    Case{"no_queue_pairs", "qp", nullptr, kEnds, kEnds, 0, kEnds, 0},
};

const Case& find_case(std::string_view name) {
  for (const Case& one : kCases) {
    if (one.name == name) return one;
  }
  throw MustError(fmt::format("there is no case {}", name));
}

std::uint64_t now(const std::uint64_t& counter) {
  return __atomic_load_n(&counter, __ATOMIC_RELAXED);
}

void must_be(std::uint64_t found, std::uint64_t expected, const char* what) {
  fmt::print("  {:<34}{:>4}\n", what, found);
  if (found != expected) throw MustError(fmt::format("{}: {} expected", what, expected));
}

void move_messages(nccl::Net& net, const bench::CommPair& pair) {
  const bench::Buffers buffers(64);
  bench::Traffic traffic(net, pair, buffers);
  for (const Pattern pattern : {Pattern::kOneAtATime, Pattern::kWindow, Pattern::kGroups}) {
    traffic.run(pattern, 64);
  }
}

// Each end moves data in a thread of its own, which is not the one that connects and closes.
void move_messages_of_all(nccl::Net& net, const std::array<bench::CommPair, kPairs>& pairs) {
  std::array<std::future<void>, kPairs> threads;
  for (std::size_t i = 0; i < kPairs; ++i) {
    threads[i] = std::async(std::launch::async, [&, i] { move_messages(net, pairs[i]); });
  }
  for (std::future<void>& thread : threads) thread.get();
}

// The control thread destroys closed comms.
void wait_for_end(const NullverbsReport& report) {
  constexpr std::uint64_t kOfTheDevice = 1;  // its protection domain stays
  const auto deadline = Clock::now() + kPatience;
  while (now(report.live_objects) != kOfTheDevice && Clock::now() < deadline) ::sched_yield();
  must_be(now(report.live_objects), kOfTheDevice, "objects left");
}

void check(nccl::Net& net, const NullverbsReport& report, const Case& expected) {
  // One after another, since the control thread still destroys objects.
  const auto counted = [&report] {
    return std::array{now(report.thread_domains), now(report.parent_domains),
                      now(report.queues_in_parent_domains), now(report.single_threaded_cqs)};
  };
  const auto before = counted();
  std::array<bench::CommPair, kPairs> pairs;
  for (bench::CommPair& pair : pairs) pair = bench::connect(net);
  const auto after = counted();
  must_be(after[0] - before[0], expected.thread_domains, "thread domains");
  must_be(after[1] - before[1], expected.parent_domains, "parent domains");
  must_be(after[2] - before[2], expected.queue_pairs, "queue pairs in them");
  must_be(after[3] - before[3], expected.cqs, "single-threaded CQs");
  must_be(now(report.live_thread_domains), expected.kept, "thread domains kept");
  move_messages_of_all(net, pairs);
  for (const bench::CommPair& pair : pairs) bench::close(net, pair);
  wait_for_end(report);
  must_be(now(report.intrusions), 0, "intrusions");
  must_be(now(report.failures), 0, "failures");
}

void run(const std::string& plugin, const std::string& verbs, const Case& expected) {
  if (expected.refused != nullptr) ::setenv("NULLVERBS_REFUSES", expected.refused, 1);
  if (expected.most != nullptr) ::setenv("BEELINE_THREAD_DOMAINS", expected.most, 1);
  nccl::Net net = bench::load(plugin, verbs, 12);
  const NullverbsReport& report = bench::report_of(verbs);
  for (const char* const round : {"At first", "Again, with what was given back"}) {
    fmt::print("{}:\n", round);
    check(net, report, expected);
  }
}

}  // namespace
}  // namespace beeline::test

int main(int argc, char** argv) {
  using namespace beeline::test;
  if (argc != 4) {
    std::fputs("usage: hints PLUGIN NULLVERBS CASE\n", stderr);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    run(argv[1], argv[2], find_case(argv[3]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hints: %s\n", error.what());
    return 1;
  }
}
