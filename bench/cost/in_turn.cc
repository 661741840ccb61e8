// SPDX-License-Identifier: Apache-2.0
//
// Moves one message of 8 bytes on each of many comms in turn, so that the processor's caches do not
// hold what a comm needs. Prints the time of a message, and that of a test that finds nothing.
// Under callgrind it dumps the counters of the messages (bench/cost/in_turn.py).
//
//   in_turn PLUGIN NULLVERBS ABI COMMS
#include <fmt/format.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

#include "tests/support/must.h"
#include "tests/support/one_thread/setup.h"
#include "tests/support/one_thread/traffic.h"

namespace beeline::bench {
namespace {

constexpr std::size_t kBytes = 8;
constexpr std::size_t kLeastMessages = 65536;
// Messages of each comm: more than any of its rings has places, so that all their pages exist.
constexpr std::size_t kWarmUp = 256;
// The least number of messages that are timed on each comm, however many comms there are.
constexpr std::size_t kRounds = 16;
constexpr int kTag = 7;

class Connection {
 public:
  Connection(nccl::Net& net, const Buffers& buffers)
      : net_(net), buffers_(buffers), comms_(connect(net)) {
    BL_BENCH_CALL(net_.calls.regMr(comms_.send, buffers_.sent(0), buffers_.all_bytes(),
                                   NCCL_PTR_HOST, &send_memory_));
    BL_BENCH_CALL(net_.calls.regMr(comms_.recv, buffers_.sent(0), buffers_.all_bytes(),
                                   NCCL_PTR_HOST, &recv_memory_));
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    (void)net_.calls.deregMr(comms_.send, send_memory_);
    (void)net_.calls.deregMr(comms_.recv, recv_memory_);
    (void)net_.calls.closeSend(comms_.send);
    (void)net_.calls.closeRecv(comms_.recv);
  }

  void receive() {
    void* data = buffers_.received(0);
    std::size_t size = kBytes;
    int tag = kTag;
    void* profiler = nullptr;
    BL_BENCH_CALL(
        net_.calls.irecv(comms_.recv, 1, &data, &size, &tag, &recv_memory_, &profiler, &receive_));
    BL_MUST(receive_ != nullptr);
  }
  bool is_received() { return is_done(receive_); }
  void send() {
    void* request = nullptr;
    // A plugin may grant an irecv only in a later call of the same comm.
    for (;;) {
      BL_BENCH_CALL(net_.calls.isend(comms_.send, buffers_.sent(0), kBytes, kTag, send_memory_,
                                     nullptr, &request));
      if (request != nullptr) break;
      BL_MUST(!is_received());
    }
    while (!is_done(request)) {
    }
    while (!is_received()) {
    }
  }

 private:
  bool is_done(void* request) {
    int done = 0;
    int size = 0;
    BL_BENCH_CALL(net_.calls.test(request, &done, &size));
    BL_MUST(done == 0 || size == int{kBytes});
    return done != 0;
  }

  nccl::Net& net_;
  const Buffers& buffers_;
  const CommPair comms_;
  void* send_memory_ = nullptr;
  void* recv_memory_ = nullptr;
  void* receive_ = nullptr;
};

using Connections = std::vector<std::unique_ptr<Connection>>;

// Calls `act` for each connection, `rounds` times. Returns nanoseconds for each call.
template <class Act>
double each_ns(const Connections& all, std::size_t rounds, Act&& act) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const auto& one : all) act(*one);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(rounds * all.size());
}

void run(const char* plugin, const char* verbs, int abi, std::size_t comms) {
  nccl::Net net = load(plugin, verbs, abi);
  const Buffers buffers(kBytes);
  Connections all;
  for (std::size_t i = 0; i < comms; ++i) all.push_back(std::make_unique<Connection>(net, buffers));
  const auto message = [](Connection& one) {
    one.receive();
    one.send();
  };
  each_ns(all, kWarmUp, message);
  const std::size_t rounds = std::max(kLeastMessages / comms, kRounds);
  CALLGRIND_DUMP_STATS_AT("not steady");
  const double message_ns = each_ns(all, rounds, message);
  CALLGRIND_DUMP_STATS_AT("in turn");
  each_ns(all, 1, [](Connection& one) { one.receive(); });
  const auto test = [](Connection& one) { BL_MUST(!one.is_received()); };
  each_ns(all, kRounds, test);
  const double test_ns = each_ns(all, rounds, test);
  each_ns(all, 1, [](Connection& one) { one.send(); });
  fmt::print("{{\"messages\": {}, \"message_ns\": {:.1f}, \"test_ns\": {:.1f}}}\n",
             rounds * all.size(), message_ns, test_ns);
}

}  // namespace
}  // namespace beeline::bench

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: in_turn PLUGIN NULLVERBS ABI COMMS\n", stderr);
    return 2;
  }
  try {
    beeline::bench::run(argv[1], argv[2], std::atoi(argv[3]), std::strtoul(argv[4], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in_turn: %s\n", error.what());
    return 1;
  }
  return 0;
}
