// SPDX-License-Identifier: Apache-2.0
//
// Moves the messages whose cost bench/cost/cost.py counts. Under callgrind it dumps the counters
// before and after the steady part of each pattern, labeled with the pattern's name. Without
// callgrind it only moves the messages, and prints the calls of the verbs library and the time.
//
//   cost PLUGIN NULLVERBS [ABI [BYTES]...]
#include <fmt/format.h>
#include <valgrind/callgrind.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "bench/cost/sender_alone.h"
#include "tests/support/one_thread/setup.h"
#include "tests/support/one_thread/traffic.h"

namespace beeline::bench {
namespace {

// Multiples of the length of all rings. Fewer for large messages, whose payloads take long to
// compare.
std::size_t messages_of(std::size_t bytes) noexcept { return bytes > 64'000 ? 256 : 2048; }
std::size_t warm_up_of(std::size_t bytes) noexcept { return bytes > 64'000 ? 64 : 512; }

// Calls of the verbs library, for each message.
void print_verbs(const NullverbsReport& before, const NullverbsReport& after, double messages) {
  const auto each = [&](auto counter) {
    return static_cast<double>(after.*counter - before.*counter) / messages;
  };
  using R = NullverbsReport;
  fmt::print(
      " \"post_send\": {:.3f}, \"send_wrs\": {:.3f}, \"post_recv\": {:.3f}, \"recv_wrs\": {:.3f}, "
      "\"polls\": {:.3f}, \"empty_polls\": {:.3f}, \"completions\": {:.3f}, "
      "\"send_completions\": {:.3f},",
      each(&R::send_posts), each(&R::send_requests), each(&R::recv_posts), each(&R::recv_requests),
      each(&R::polls), each(&R::empty_polls), each(&R::completions), each(&R::send_completions));
}

void measure(Traffic& traffic, const NullverbsReport& report, Pattern pattern, std::size_t bytes) {
  const bool moves = pattern != Pattern::kEmptyTests && pattern != Pattern::kNoCredit;
  const std::size_t count = moves ? messages_of(bytes) : 4096;
  traffic.run(pattern, warm_up_of(bytes));
  const NullverbsReport before = report;
  const Traffic::EmptyCalls calls_before = traffic.empty_calls();
  CALLGRIND_DUMP_STATS_AT("not steady");
  const auto begin = std::chrono::steady_clock::now();
  traffic.run(pattern, count);
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  const std::string label = fmt::format("{}, {} bytes", name_of(pattern), bytes);
  CALLGRIND_DUMP_STATS_AT(label.c_str());
  fmt::print("{{\"label\": \"{}\", \"pattern\": \"{}\", \"bytes\": {}, \"count\": {},", label,
             name_of(pattern), bytes, count);
  print_verbs(before, report, static_cast<double>(count));
  fmt::print(" \"ns\": {:.1f},", taken.count() / static_cast<double>(count));
  const auto each = [&](std::uint64_t now, std::uint64_t then) {
    return static_cast<double>(now - then) / static_cast<double>(count);
  };
  fmt::print(" \"empty_tests\": {:.3f}, \"empty_sends\": {:.3f}, \"empty_receives\": {:.3f}}}\n",
             each(traffic.empty_calls().tests, calls_before.tests),
             each(traffic.empty_calls().sends, calls_before.sends),
             each(traffic.empty_calls().receives, calls_before.receives));
}

// After all patterns, so that callgrind's counts do not include it.
std::string sender_facts(nccl::Net& net, const NullverbsReport& report, const CommPair& pair,
                         const std::vector<std::size_t>& sizes) {
  std::string facts;
  for (const std::size_t bytes : sizes) {
    const SenderCounts each =
        count_sender(net, report, pair, Buffers(bytes), messages_of(bytes) / 4);
    facts += fmt::format(
        "{}{{\"bytes\": {}, \"work requests\": {:.3f}, \"doorbells\": {:.3f}, "
        "\"completions\": {:.3f}}}",
        facts.empty() ? "" : ", ", bytes, each.work_requests, each.doorbells, each.completions);
  }
  return facts;
}

void run(const std::string& plugin, const std::string& verbs, int abi,
         const std::vector<std::size_t>& sizes) {
  nccl::Net net = load(plugin, verbs, abi);
  const NullverbsReport& report = report_of(verbs);
  const CommPair pair = connect(net);
  for (const std::size_t bytes : sizes) {
    const Buffers buffers(bytes);
    Traffic traffic(net, pair, buffers);
    for (const Pattern pattern :
         {Pattern::kOneAtATime, Pattern::kWindow, Pattern::kBatches, Pattern::kGroups}) {
      measure(traffic, report, pattern, bytes);
    }
    if (bytes != sizes.front()) continue;
    measure(traffic, report, Pattern::kNoCredit, bytes);
    measure(traffic, report, Pattern::kEmptyTests, bytes);
  }
  const std::string sender = sender_facts(net, report, pair, sizes);
  fmt::print(
      "{{\"sender\": [{}], \"hints\": {{\"thread domains\": {}, \"parent domains\": {}, \"queue "
      "pairs in them\": {}, "
      "\"single-threaded CQs\": {}}}, \"failures\": {}}}\n",
      sender, report.thread_domains, report.parent_domains, report.queues_in_parent_domains,
      report.single_threaded_cqs, report.failures);
  close(net, pair);
}

}  // namespace
}  // namespace beeline::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: cost PLUGIN NULLVERBS [ABI [BYTES]...]\n", stderr);
    return 2;
  }
  const int abi = argc > 3 ? std::atoi(argv[3]) : 0;
  std::vector<std::size_t> sizes;
  for (int i = 4; i < argc; ++i) sizes.push_back(std::strtoul(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {8, 512 << 10};
  try {
    beeline::bench::run(argv[1], argv[2], abi, sizes);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cost: %s\n", error.what());
    return 1;
  }
  return 0;
}
