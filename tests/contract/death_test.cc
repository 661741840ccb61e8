// SPDX-License-Identifier: Apache-2.0
//
// When a peer is killed, both the comm and the log report it, whatever the comm is doing. A peer
// that is only stopped is waited for.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <thread>

#include "tests/contract/flow.h"
#include "tests/contract/gpu.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kDeathSize = 100000;
constexpr size_t kDeathWindow = 8;

std::string this_host() {
  std::array<char, 256> name{};
  BL_MUST(gethostname(name.data(), name.size() - 1) == 0);
  return name.data();
}

// Waits for the warning that names both devices and the peer's host. The two devices differ, so
// that neither name can be taken for the other.
void must_be_named(const End& end) {
  const std::vector<std::string>& devices = fabric_facts().devices;
  const bool is_sender = end.peer.rank() == 0;
  const std::string mine = is_sender ? devices.front() : devices.back();
  const std::string theirs = is_sender ? devices.back() : devices.front();
  wait_until(
      [&] {
        return log_has(NCCL_LOG_WARN, {mine, theirs, this_host()});
      },
      "a warning that names both devices and the peer's host", soon());
}

// Waits until the plugin has noticed by itself, on comms that nobody calls. The log line is no
// warning: many programs exit without closing their comms, which harms no peer that has closed its
// own or does not use them.
void must_be_noticed() {
  wait_until([] { return log_has(NCCL_LOG_INFO, {"lost", this_host()}); }, "a line", soon());
}

// After an error, every call fails.
void must_stay_broken(const Sender& end, const Part& part) {
  for (int i = 0; i < 10; ++i) BL_MUST(any_isend(end.net(), end.comm, part).first != ncclSuccess);
}
void must_stay_broken(const Receiver& end, const Part& part) {
  for (int i = 0; i < 10; ++i) {
    const auto [result, request] = any_irecv(end.net(), end.comm, std::span(&part, 1));
    BL_MUST(result != ncclSuccess);
  }
}

// The bodies of the process that is killed.
[[noreturn]] void send_for_ever(Sender& end) {
  Buffer memory(end, kDeathSize);
  for (;;) end.send(memory.all()).finish();
}
[[noreturn]] void receive_for_ever(Receiver& end) {
  Buffer memory(end, kDeathSize);
  for (;;) end.receive(memory.all()).finish();
}
void wait_for_ever(End& end) { end.peer.meet(); }

// The receiver of `comms to others live on`, in each of its processes.
Comm accept_from_first_rank(Peer& peer, const Session& session) {
  Handle handle{};
  const Comm listener = listen(session, 0, &handle);
  peer.send(0, handle);
  return accept(session, listener);
}

// In memory that the processes of all ranks share.
std::atomic<bool>& make_shared_flag() {
  void* const memory = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BL_MUST(memory != MAP_FAILED);
  return *new (memory) std::atomic<bool>(false);
}

constexpr size_t kSenderRank = 0;
constexpr size_t kReceiverRank = 1;

}  // namespace

TEST_CASE("death: a sender in the middle of its work notices", "[contract][death]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kDeathSize);
        const Part part = memory.all();
        for (int i = 0; i < 20; ++i) end.send(part).finish();
        Request finished = end.send(part);
        finished.finish();
        end.peer.kill(kReceiverRank);
        const ncclResult_t result = send_until_error(end, part, soon());
        BL_MUST(result == ncclRemoteError);
        must_stay_broken(end, part);
        must_be_named(end);
      },
      receive_for_ever);
}

TEST_CASE("death: a receiver in the middle of its work notices", "[contract][death]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(way, send_for_ever, [](Receiver& end) {
    Buffer memory(end, kDeathSize);
    const Part part = memory.all();
    for (int i = 0; i < 20; ++i) end.receive(part).finish();
    end.peer.kill(kSenderRank);
    BL_MUST(receive_until_error(end, part, soon()) == ncclRemoteError);
    must_stay_broken(end, part);
    must_be_named(end);
  });
}

// On a busy machine an attempt may take longer, so there are several.
TEST_CASE("death: either end gets an error within a second", "[contract][death]") {
  if (!kProcessesWork) return;
  const size_t killed = GENERATE(kSenderRank, kReceiverRank);
  const auto limit = std::chrono::seconds(is_slow() ? 20 : 1);
  CAPTURE(killed);
  auto& is_soon = make_shared_flag();
  for (int attempts = 5; attempts != 0 && !is_soon; --attempts) {
    const auto survive = [&](End& end, const auto& until_error) {
      Buffer memory(end, kDeathSize);
      const Part part = memory.all();
      const Clock::time_point begun = Clock::now();
      end.peer.kill(killed);
      BL_MUST(until_error(part) == ncclRemoteError);
      if (Clock::now() - begun < limit) is_soon = true;
    };
    run_loose_flow(
        {Abi::kV12, PeerMode::kProcesses},
        [&](Sender& end) {
          if (killed == kSenderRank) send_for_ever(end);
          survive(end, [&](const Part& part) { return send_until_error(end, part, soon()); });
        },
        [&](Receiver& end) {
          if (killed == kReceiverRank) receive_for_ever(end);
          survive(end, [&](const Part& part) { return receive_until_error(end, part, soon()); });
        });
  }
  CHECK(is_soon);
}

TEST_CASE("death: requests in flight end with an error", "[contract][death]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(
      way, [](Sender& end) { wait_for_ever(end); },
      [](Receiver& end) {
        Buffer memory(end, kDeathWindow * kDeathSize);
        std::vector<Request> requests;
        for (size_t i = 0; i < kDeathWindow; ++i) {
          requests.push_back(end.receive(memory.part(i * kDeathSize, kDeathSize)));
        }
        for (Request& request : requests) BL_MUST(!request.poll());
        end.peer.kill(kSenderRank);
        BL_MUST(poll_until_error(requests[0]) == ncclRemoteError);
        for (Request& request : requests) {
          for (int i = 0; i < 3; ++i) BL_MUST(request.try_poll() != ncclSuccess);
          BL_MUST(!request.is_done());
        }
        must_be_named(end);
        memory.must_hold();
      });
}

// NCCL tests such a receive once and then only waits for the data, without another call on that
// comm.
TEST_CASE("death: a receive that NCCL can do without fails, unless it was done early",
          "[contract][death]") {
  if (!kProcessesWork) return;
  const std::string early_done = GENERATE(as<std::string>{}, "0", "1");
  const Abi abi = GENERATE(filter(has_optional_completion, from_range(main_abis())));
  CAPTURE(abi, early_done);
  const Variable variable("BEELINE_EARLY_DONE", early_done.c_str());
  run_loose_flow(
      {abi, PeerMode::kProcesses}, [](Sender& end) { wait_for_ever(end); },
      [&](Receiver& end) {
        Buffer memory(end, kDeathSize);
        Request receive = irecv_optional(end.net(), end.comm, memory.all());
        const bool is_done = receive.poll();
        BL_MUST(is_done == (early_done == "1"));
        end.peer.kill(kSenderRank);
        if (is_done) return must_be_noticed();
        BL_MUST(poll_until_error(receive) == ncclRemoteError);
        must_be_named(end);
      });
}

TEST_CASE("death: an idle sender notices with its next call", "[contract][death]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kDeathSize);
        end.peer.kill(kReceiverRank);
        must_be_noticed();  // before any call
        const Part part = memory.all();
        BL_MUST(send_until_error(end, part, soon()) == ncclRemoteError);
        must_stay_broken(end, part);
        must_be_named(end);
      },
      [](Receiver& end) { wait_for_ever(end); });
}

TEST_CASE("death: an idle receiver notices with its next call", "[contract][death]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(
      way, [](Sender& end) { wait_for_ever(end); },
      [](Receiver& end) {
        Buffer memory(end, kDeathSize);
        end.peer.kill(kSenderRank);
        must_be_noticed();
        const Part part = memory.all();
        BL_MUST(receive_until_error(end, part, soon()) == ncclRemoteError);
        must_stay_broken(end, part);
        must_be_named(end);
      });
}

TEST_CASE("death: what had arrived before stays received", "[contract][death]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kDeathSize);
        memory.fill(0, kDeathSize, 1);
        end.send(memory.all()).finish();
        end.peer.send(kReceiverRank, true);
        wait_for_ever(end);
      },
      [](Receiver& end) {
        Buffer memory(end, 2 * kDeathSize);
        memory.expect(0, kDeathSize, 1);
        Request first = end.receive(memory.part(0, kDeathSize));
        Request second = end.receive(memory.part(kDeathSize, kDeathSize));
        end.peer.receive<bool>(kSenderRank);
        end.peer.kill(kSenderRank);
        must_be_noticed();  // before the first call of test
        first.finish();
        BL_MUST(first.size() == kDeathSize);
        poll_until_error(second);
        memory.must_hold();
      });
}

TEST_CASE("death: comms to others live on", "[contract][death]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  constexpr size_t kMessages = 200;
  run_processes(
      {[&](Peer& peer) {
         const Session session(abi);
         std::vector<Comm> comms;
         for (size_t other : {1U, 2U}) {
           auto handle = peer.receive<Handle>(other);
           comms.push_back(connect(session, 0, handle));
         }
         Memory memory(kDeathSize);
         memory.fill(0, kDeathSize, 1);
         const Mr to_victim(session.net(), comms[0], memory);
         const Mr to_other(session.net(), comms[1], memory);
         isend(session.net(), comms[0], {memory.at(), kDeathSize, 0, to_victim.raw()}).finish();
         for (size_t i = 0; i < kMessages; ++i) {
           if (i == kMessages / 4) peer.kill(1);
           isend(session.net(), comms[1], {memory.at(), kDeathSize, 0, to_other.raw()}).finish();
         }
         peer.meet();
       },
       [&](Peer& peer) {
         const Session session(abi);
         const Comm comm = accept_from_first_rank(peer, session);
         Buffer memory(session.net(), comm, kDeathSize);
         for (;;) {
           irecv(session.net(), comm, memory.all()).finish();
         }
       },
       [&](Peer& peer) {
         const Session session(abi);
         const Comm comm = accept_from_first_rank(peer, session);
         Buffer memory(session.net(), comm, kDeathSize);
         memory.expect(0, kDeathSize, 1);
         for (size_t i = 0; i < kMessages; ++i) {
           irecv(session.net(), comm, memory.all()).finish();
           memory.must_hold();
         }
         peer.meet();
       }});
}

TEST_CASE("death: a peer that dies while connecting leaves nobody waiting", "[contract][death]") {
  if (!kProcessesWork) return;
  const Abi abi = GENERATE(from_range(main_abis()));
  const size_t turns = GENERATE(size_t{0}, size_t{1}, size_t{5}, size_t{50});
  CAPTURE(abi, turns);
  run_processes({[&](Peer& peer) {
                   const Session session(abi);
                   auto handle = peer.receive<Handle>(1);
                   for (size_t i = 0; i < turns; ++i) {
                     if (try_connect(session, 0, handle).comm != nullptr) break;
                   }
                   peer.meet();
                   peer.meet();  // killed here
                 },
                 [&](Peer& peer) {
                   const Session session(abi);
                   Handle handle{};
                   Comm listener = listen(session, 0, &handle);
                   peer.send(0, handle);
                   peer.meet();
                   peer.kill(0);
                   // An accept may succeed or fail; the listener must not be stuck.
                   for (int i = 0; i < 100; ++i) {
                     const Attempt attempt = try_accept(session, listener);
                     if (attempt.comm != nullptr) {
                       Comm(session.net(), CommKind::kRecv, attempt.comm).close();
                     }
                     if (attempt.result != ncclSuccess) break;
                     sched_yield();
                   }
                   listener.close();
                   const Link link = link_to_self(session);
                 }});
}

TEST_CASE("death: a peer that is stopped for long is waited for", "[contract][slow]") {
  if (!kProcessesWork) return;
  const size_t stopped = GENERATE(kSenderRank, kReceiverRank);
  const Way way{stopped == kSenderRank ? Abi::kV8 : Abi::kV12, PeerMode::kProcesses};
  CAPTURE(way, stopped);
  static constexpr std::chrono::seconds kLong{20};
  constexpr uint32_t kMessages = 400;
  // Stops the other process, and continues it after a while.
  const auto stop = [](pid_t other) {
    return std::thread([other] {
      BL_MUST(kill(other, SIGSTOP) == 0);
      std::this_thread::sleep_for(kLong);  // a long time is the subject of this test
      BL_MUST(kill(other, SIGCONT) == 0);
    });
  };
  run_flow(
      way,
      [&](Sender& end) {
        const auto other = end.peer.exchange(getpid());
        std::thread stopper;
        Buffer memory(end, kDeathWindow * kDeathSize);
        std::deque<Request> requests;
        for (uint32_t i = 0; i < kMessages; ++i) {
          if (i == kMessages / 2 && stopped == kReceiverRank) stopper = stop(other);
          if (requests.size() == kDeathWindow) {
            wait_until([&] { return requests.front().poll(); }, "a send", 2 * kLong);
            requests.pop_front();
          }
          memory.fill(i % kDeathWindow * kDeathSize, kDeathSize, i);
          const Part part = memory.part(i % kDeathWindow * kDeathSize, kDeathSize);
          wait_until(
              [&] {
                const Request request = end.try_send(part);
                if (request) requests.push_back(request);
                return static_cast<bool>(request);
              },
              "room for a send", 2 * kLong);
        }
        for (Request& request : requests) {
          wait_until([&] { return request.poll(); }, "a send", 2 * kLong);
        }
        if (stopper.joinable()) stopper.join();
        BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
      },
      [&](Receiver& end) {
        const auto other = end.peer.exchange(getpid());
        std::thread stopper;
        Buffer memory(end, kDeathSize);
        for (uint32_t i = 0; i < kMessages; ++i) {
          if (i == kMessages / 2 && stopped == kSenderRank) stopper = stop(other);
          Request request = end.receive(memory.all());
          wait_until([&] { return request.poll(); }, "a message", 2 * kLong);
          memory.expect(0, kDeathSize, i);
          memory.must_hold();
        }
        if (stopper.joinable()) stopper.join();
        BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
      });
}
