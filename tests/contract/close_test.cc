// SPDX-License-Identifier: Apache-2.0
//
// Closing comms and dropping registrations: with requests in flight, by the two ends in any order,
// and without waiting for the other end.
#include <algorithm>
#include <span>

#include "tests/contract/flow.h"
#include "tests/contract/gpu.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kCloseSize = 1U << 20;
constexpr size_t kRequests = 8;

enum class First { kSender, kReceiver, kNobody };
const char* name_of(First first) {
  switch (first) {
    case First::kSender: return "the sender closes first";
    case First::kReceiver: return "the receiver closes first";
    case First::kNobody: return "both close at once";
  }
  return "";
}

enum class Pending { kReceives, kSends, kBoth };
const char* name_of(Pending pending) {
  switch (pending) {
    case Pending::kReceives: return "receives nobody sends for";
    case Pending::kSends: return "sends nobody asked about";
    case Pending::kBoth: return "requests on both sides";
  }
  return "";
}

// Calls test until the request is done or has failed. Both are right; it must not stay pending.
void must_end(Request& request) {
  ncclResult_t result = ncclSuccess;
  wait_until(
      [&] {
        result = request.try_poll();
        return result != ncclSuccess || request.is_done();
      },
      "a request to end");
}

// The end that closes second waits until the other has closed.
void close_in_turn(End& end, First first, Buffer& memory) {
  const bool is_first = end.peer.rank() == (first == First::kSender ? 0U : 1U);
  if (first != First::kNobody && !is_first) end.peer.meet();
  memory.drop();
  end.comm.close();
  if (first != First::kNobody && is_first) end.peer.meet();
}

constexpr size_t kCloseMessages = 4;

// A buffer for messages of `size` bytes, which may be empty.
Buffer buffer_for(const Session& session, const Comm& comm, size_t size) {
  return {session.net(), comm, std::max(size, size_t{1})};
}

std::vector<Request> send_several(const Session& session, const Comm& comm, const Part& part) {
  std::vector<Request> requests;
  for (size_t i = 0; i < kCloseMessages; ++i) requests.push_back(isend(session.net(), comm, part));
  return requests;
}

// Posts one receive in each part of the buffer.
std::vector<Request> receive_in_all_parts(const Receiver& end, const Buffer& memory) {
  std::vector<Request> requests;
  for (size_t offset = 0; offset < memory.size(); offset += kCloseSize) {
    requests.push_back(end.receive(memory.part(offset, kCloseSize)));
  }
  return requests;
}

}  // namespace

TEST_CASE("close: closing NULL is no error", "[contract][close]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    BL_MUST_SUCCEED(session.net().close_send(nullptr));
    BL_MUST_SUCCEED(session.net().close_recv(nullptr));
    BL_MUST_SUCCEED(session.net().close_listen(nullptr));
  });
}

TEST_CASE("close: requests in flight do not hinder it", "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  const First first = GENERATE(First::kSender, First::kReceiver, First::kNobody);
  const Pending pending = GENERATE(Pending::kReceives, Pending::kSends, Pending::kBoth);
  CAPTURE(way, name_of(first), name_of(pending));
  run_loose_flow(
      way,
      [&](Sender& end) {
        Buffer memory(end, kCloseSize);
        memory.fill(0, kCloseSize, 1);
        end.peer.meet();  // every receive is posted
        const size_t sends = pending == Pending::kReceives ? 0 : kRequests / 2;
        for (size_t i = 0; i < sends; ++i) end.send(memory.all());
        end.peer.meet();  // every send is posted
        close_in_turn(end, first, memory);
      },
      [&](Receiver& end) {
        Buffer memory(end, kRequests * kCloseSize);
        const size_t receives = pending == Pending::kSends ? kRequests / 2 : kRequests;
        std::vector<Request> requests;
        for (size_t i = 0; i < receives; ++i) {
          requests.push_back(end.receive(memory.part(i * kCloseSize, kCloseSize)));
        }
        end.peer.meet();
        if (pending == Pending::kReceives) {
          for (Request& request : requests) BL_MUST(!request.poll());
        }
        end.peer.meet();
        close_in_turn(end, first, memory);
      });
}

TEST_CASE("close: after deregMr nothing lands in the buffer", "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  const bool closes = GENERATE(true, false);
  CAPTURE(way, closes);
  const uint32_t rounds = repetitions(15, 5);
  constexpr size_t kBig = 2U << 20;
  run_two(
      way.mode,
      [&](Peer& peer) {
        const Session session(way.abi);
        Memory memory(kBig);
        memory.fill(0, kBig, 1);
        for (uint32_t round = 0; round < rounds; ++round) {
          Comm comm = connect_to_peer(peer, session, 0);
          const Mr mr(session.net(), comm, memory);
          peer.meet();
          // The receiver drops its buffer about now. The sends may succeed or fail, but must not
          // stay pending.
          const Part part{memory.at(), kBig, 0, mr.raw()};
          std::vector<Request> requests;
          for (int i = 0; i < 50 && requests.size() < 2; ++i) {
            auto [result, request] = any_isend(session.net(), comm, part);
            if (result != ncclSuccess) break;
            if (request) requests.push_back(request);
          }
          for (Request& request : requests) (void)request.try_poll();
          peer.meet();
        }
      },
      [&](Peer& peer) {
        const Session session(way.abi);
        Memory memory(kBig);
        for (uint32_t round = 0; round < rounds; ++round) {
          Comm comm = accept_from_peer(peer, session, last_device(session));
          Mr mr(session.net(), comm, memory);
          const Part part{memory.at(), kBig, 0, mr.raw()};
          irecv(session.net(), comm, part);
          irecv(session.net(), comm, part);
          peer.meet();
          for (uint32_t i = 0; i < round * 10; ++i) sched_yield();
          mr.drop();
          memory.fill(0, kBig, 1000 + round);
          if (closes) comm.close();
          peer.meet();
          memory.must_hold();
        }
      });
}

TEST_CASE("close: receives without a needed completion do not hinder it either",
          "[contract][close]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const Abi abi = GENERATE(filter(has_optional_completion, from_range(main_abis())));
  CAPTURE(abi, mode == PeerMode::kThreads);
  const Variable early("BEELINE_EARLY_DONE", "1");
  constexpr size_t kFlags = 4096;
  run_loose_flow(
      {abi, mode},
      [&](Sender& end) {
        Buffer memory(end, kFlags);
        memory.fill(0, kFlags, 1);
        const Part part = memory.all();
        for (size_t i = 0; i < kRequests / 2; ++i) end.send(part).finish();
        end.peer.meet();
        // The receiver drops its buffers about now.
        for (size_t i = 0; i < kRequests; ++i) (void)any_isend(end.net(), end.comm, part);
        end.peer.meet();
      },
      [&](Receiver& end) {
        Buffer memory(end, kRequests * kFlags);
        std::vector<Request> requests;
        for (size_t i = 0; i < kRequests; ++i) {
          requests.push_back(irecv_optional(end.net(), end.comm, memory.part(i * kFlags, kFlags)));
        }
        finish_all(std::span(requests).first(kRequests / 2));
        for (Request& request : std::span(requests).last(kRequests / 2)) (void)request.try_poll();
        end.peer.meet();
        memory.drop();
        memory.fill(0, memory.size(), 2);
        end.comm.close();
        end.peer.meet();
        memory.must_hold();
      });
}

TEST_CASE("close: a send succeeds although the receiver closed without waiting for it",
          "[contract][close]") {
  if (!kProcessesWork) return;  // the plugin reads its environment once
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const Abi abi = GENERATE(filter(has_optional_completion, from_range(main_abis())));
  CAPTURE(abi, mode == PeerMode::kThreads);
  const Variable early("BEELINE_EARLY_DONE", "1");
  constexpr size_t kReceives = 3;
  run_loose_flow(
      {abi, mode},
      [&](Sender& end) {
        Buffer memory(end, kCloseSize);
        end.peer.meet();  // the receiver has closed
        end.send(memory.part(0, 0)).finish();
        end.send(memory.part(0, 1)).finish();
        end.send(memory.all()).finish();
        // The receiver had posted three receives: there is none for a fourth send.
        BL_MUST(send_until_error(end, memory.part(0, 0), soon()) == ncclRemoteError);
      },
      [&](Receiver& end) {
        Buffer memory(end, kReceives * kCloseSize);
        for (size_t i = 0; i < kReceives; ++i) {
          irecv_optional(end.net(), end.comm, memory.part(i * kCloseSize, kCloseSize)).finish();
        }
        memory.drop();
        end.comm.close();
        end.peer.meet();
      });
}

TEST_CASE("close: a sender may deregister while its sends are in flight", "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  run_loose_flow(
      way,
      [&](Sender& end) {
        const Pages pages(kCloseSize);
        Mr mr(end.net(), end.comm, pages.data(), kCloseSize);
        end.peer.meet();
        for (size_t i = 0; i < kRequests; ++i) end.send({pages.data(), kCloseSize, 0, mr.raw()});
        mr.drop();
        withdraw(pages, kCloseSize);
        end.comm.close();
        const bool is_our_log = way.mode == PeerMode::kProcesses;
        if (is_our_log) BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
        end.peer.meet();
      },
      [](Receiver& end) {
        Buffer memory(end, kRequests * kCloseSize);
        std::vector<Request> requests = receive_in_all_parts(end, memory);
        end.peer.meet();
        for (Request& request : requests) must_end(request);
        end.peer.meet();
      });
}

// When NCCL aborts, it deregisters before it closes.
TEST_CASE("close: a receiver may deregister while sends are in flight, without a warning",
          "[contract][close]") {
  if (!kProcessesWork) return;
  const Way way = GENERATE(from_range(process_ways()));
  CAPTURE(way);
  run_loose_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kCloseSize);
        const Part part = memory.all();
        end.peer.meet();
        for (size_t i = 0; i < 10 * kRequests; ++i) (void)any_isend(end.net(), end.comm, part);
        end.peer.meet();
      },
      [](Receiver& end) {
        Buffer memory(end, kRequests * kCloseSize);
        receive_in_all_parts(end, memory);
        end.peer.meet();
        memory.drop();
        end.peer.meet();  // the sender has written to memory that is no longer registered
        end.comm.close();
        BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
      });
}

TEST_CASE("close: a sender's requests complete although the receiver is gone",
          "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  const size_t size = GENERATE(size_t{0}, size_t{100}, size_t{1} << 20);
  CAPTURE(way, size);
  const uint32_t rounds = repetitions(40, 10);
  run_two(
      way.mode,
      [&](Peer& peer) {
        const Session session(way.abi);
        for (uint32_t round = 0; round < rounds; ++round) {
          const Comm comm = connect_to_peer(peer, session, 0);
          Buffer memory = buffer_for(session, comm, size);
          memory.fill(0, size, 1);
          std::vector<Request> requests = send_several(session, comm, memory.part(0, size));
          // In every other round the receiver has closed before the sender calls test.
          if (round % 2 == 1) peer.meet();
          finish_all(requests);
          if (round % 2 == 0) peer.meet();
        }
      },
      [&](Peer& peer) {
        const Session session(way.abi);
        for (uint32_t round = 0; round < rounds; ++round) {
          Comm comm = accept_from_peer(peer, session, last_device(session));
          Buffer memory = buffer_for(session, comm, size);
          std::vector<Request> requests;
          for (size_t i = 0; i < kCloseMessages; ++i) {
            requests.push_back(irecv(session.net(), comm, memory.part(0, size)));
          }
          finish_all(requests);
          memory.drop();
          comm.close();
          peer.meet();
        }
      });
}

TEST_CASE("close: an orderly close logs no warning", "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  run_flow(
      way,
      [&](Sender& end) {
        Buffer memory(end, kCloseSize);
        memory.fill(0, kCloseSize, 1);
        end.send(memory.all()).finish();
        memory.drop();
        end.comm.close();
        end.peer.meet();
        BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
        if (way.mode == PeerMode::kProcesses) {
          BL_MUST(log_has(NCCL_LOG_INFO, {"the connection is closed: sent ", " 100 %"}));
        }
      },
      [](Receiver& end) {
        Buffer memory(end, kCloseSize);
        end.receive(memory.all()).finish();
        end.peer.meet();
        memory.drop();
        end.comm.close();
        BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
      });
}
