// SPDX-License-Identifier: Apache-2.0
//
// The control thread's queue: device commands take milliseconds, as on real hardware, and there are
// more connects at once than the thread can finish within the timeout of one.
#include <sched.h>

#include <atomic>
#include <vector>

#include "tests/plugin/component/connect_raw_peer.h"

using namespace beeline;
using namespace beeline::test;

namespace {

constexpr std::size_t kConnects = 60;
constexpr std::chrono::milliseconds kCommand(25);  // all together take longer than kLimit
constexpr std::chrono::milliseconds kLimit(1000);

std::atomic<std::size_t> created{0};

ibv_qp* create_slowly(ibv_pd* pd, ibv_qp_init_attr* init) {
  const timespec time{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kCommand).count()};
  nanosleep(&time, nullptr);
  ++created;
  return softnic_api().create_qp(pd, init);
}

verbs::Api slow_verbs() {
  verbs::Api api = softnic_api();
  api.create_qp = create_slowly;
  return api;
}

ControlOptions short_limit() {
  ControlOptions options = control_options();
  options.connect_timeout = kLimit;
  return options;
}

// Binds the calling thread, and so the control threads that it starts, to one processor.
class OneProcessor {
 public:
  OneProcessor() {
    BL_MUST(sched_getaffinity(0, sizeof before_, &before_) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    BL_MUST(sched_setaffinity(0, sizeof one, &one) == 0);
  }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

struct QueuedConnect {
  Ticket ticket;
  Listener* listener = nullptr;
  ConnectionPtr sender;
  ConnectionPtr receiver;
};

}  // namespace

// The queue of either end: a connect waits in its own control thread's queue, or for the peer's.
TEST_CASE("queue: time in a control thread's queue is not time without an answer",
          "[component][connect]") {
  const TestFabric fabric;
  const verbs::Api api = slow_verbs();
  const auto quick = scan(fabric);
  const auto slow = must(DeviceTable::scan(api, device_options(fabric)));
  const LogCapture log;
  const bool accepting_is_slow = GENERATE(false, true);
  CAPTURE(accepting_is_slow);
  Party a(accepting_is_slow ? *slow : *quick, short_limit());
  Party b(accepting_is_slow ? *quick : *slow, short_limit());
  std::vector<QueuedConnect> all(kConnects);
  for (QueuedConnect& one : all) one.listener = a.listen(one.ticket);
  std::size_t made = 0;
  std::size_t failed = 0;
  wait_for(
      [&] {
        made = 0;
        for (QueuedConnect& one : all) {
          if (one.sender == nullptr) {
            Result<ConnectionPtr> sender = b.connect(one.ticket);
            failed += !sender;
            if (sender) one.sender = std::move(*sender);
          }
          if (one.receiver == nullptr) one.receiver = must(a.accept(one.listener));
          made += one.sender != nullptr && one.receiver != nullptr;
        }
        return made == all.size() || failed > 0;
      },
      "all connections");
  CHECK(failed == 0);
  CHECK(log.count(LogLevel::kWarn) == 0);
  for (QueuedConnect& one : all) a.plane().close(one.listener);
}

TEST_CASE("queue: connects that have waited for a channel let other channels have their turns",
          "[component][connect]") {
  const TestFabric fabric;
  const verbs::Api api = slow_verbs();
  const auto table = must(DeviceTable::scan(api, device_options(fabric)));
  Party party(*table);
  Ticket own;
  Listener* const listener = party.listen(own);
  RawPeer other(handle_of(own));
  other.introduce(hello_for(handle_of(own)));
  FakeListener fake;
  std::vector<Ticket> tickets(kConnects, fake.ticket());
  for (Ticket& ticket : tickets) BL_MUST(must(party.connect(ticket)) == nullptr);
  other.sync();  // now the control thread has begun them
  other.sync();
  created = 0;
  RawPeer channel = fake.welcome();
  channel.receive_message<wire::Connect>();
  other.sync();
  CHECK(created < kConnects);
  for (std::size_t i = 1; i < kConnects; ++i) channel.receive_message<wire::Connect>();
  CHECK(created == kConnects);
  party.plane().close(listener);
}

// A thread that polls without yielding keeps the processor for its whole time slice, and each
// connection has several steps that wait for the control threads.
TEST_CASE("queue: on the processor of the control thread a poll gives way to it",
          "[component][connect]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const OneProcessor one_processor;
  Party a(*table);
  Party b(*table);
  constexpr std::size_t kRounds = 20;
  constexpr std::size_t kMostPolls = 200;  // of each
  std::size_t polls = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    QueuedConnect one;
    one.listener = a.listen(one.ticket);
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (one.sender == nullptr || one.receiver == nullptr) {
      if (one.sender == nullptr) one.sender = must(b.connect(one.ticket));
      if (one.receiver == nullptr) one.receiver = must(a.accept(one.listener));
      ++polls;
      BL_MUST(Clock::now() < deadline);
    }
    a.plane().close(one.listener);
  }
  CAPTURE(polls);
  CHECK(polls < kRounds * kMostPolls);
}
