// SPDX-License-Identifier: Apache-2.0
//
// Closing comms and dropping registrations: with requests in flight, by the two ends in any order,
// and without waiting for the other end.
#include <array>
#include <span>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/gpu.h"
#include "tests/plugin/contract/plugin_log.h"
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

// Posts one receive in each part of the buffer.
std::vector<Request> receive_in_all_parts(const Receiver& end, const Buffer& memory) {
  std::vector<Request> requests;
  for (size_t offset = 0; offset < memory.size(); offset += kCloseSize) {
    requests.push_back(end.receive(memory.part(offset, kCloseSize)));
  }
  return requests;
}

}  // namespace

TEST_CASE("close: closing NULL is no error, nor is deregistering NULL", "[contract][close]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Net& net = session.net();
    const Link link = link_to_self(session);
    BL_MUST_SUCCEED(net.dereg_mr(link.send.raw(), nullptr));
    BL_MUST_SUCCEED(net.dereg_mr(link.recv.raw(), nullptr));
    BL_MUST_SUCCEED(net.close_send(nullptr));
    BL_MUST_SUCCEED(net.close_recv(nullptr));
    BL_MUST_SUCCEED(net.close_listen(nullptr));
  });
}

// Receives that nobody sends for, and sends that nobody asked about.
TEST_CASE("close: requests in flight do not hinder it", "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  const First first = GENERATE(First::kSender, First::kReceiver, First::kNobody);
  CAPTURE(way, name_of(first));
  run_loose_flow(
      way,
      [&](Sender& end) {
        Buffer memory(end, kCloseSize);
        end.peer.meet();  // every receive is posted
        for (size_t i = 0; i < kRequests / 2; ++i) end.send(memory.all());
        end.peer.meet();  // every send is posted
        close_in_turn(end, first, memory);
      },
      [&](Receiver& end) {
        Buffer memory(end, kRequests * kCloseSize);
        receive_in_all_parts(end, memory);
        end.peer.meet();
        end.peer.meet();
        close_in_turn(end, first, memory);
      });
}

// When NCCL aborts, it deregisters before it closes. That is no reason for a warning.
TEST_CASE("close: after deregMr nothing lands in the buffer", "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  const bool closes = GENERATE(true, false);
  CAPTURE(way, closes);
  const Variable early("BEELINE_EARLY_DONE", "1");
  const uint32_t rounds = repetitions(15, 5);
  constexpr size_t kBig = 2U << 20;
  run_two(
      way.mode,
      [&](Peer& peer) {
        const Session session;
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
        const Session session;
        Memory memory(kBig);
        for (uint32_t round = 0; round < rounds; ++round) {
          Comm comm = accept_from_peer(peer, session, last_device(session));
          Mr mr(session.net(), comm, memory);
          const Part part{memory.at(), kBig, 0, mr.raw()};
          irecv(session.net(), comm, part);
          (void)irecv_optional(session.net(), comm, part).try_poll();  // NCCL takes it for done
          peer.meet();
          for (uint32_t i = 0; i < round * 10; ++i) sched_yield();
          mr.drop();
          memory.fill(0, kBig, 1000 + round);
          if (closes) comm.close();
          peer.meet();
          memory.must_hold();
        }
        const bool is_own_log = way.mode == PeerMode::kProcesses;
        if (is_own_log) BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
      });
}

TEST_CASE("close: a send succeeds although the receiver closed without waiting for it",
          "[contract][close]") {
  if (!kProcessesWork) return;  // the plugin reads its environment once
  const Variable early("BEELINE_EARLY_DONE", "1");
  constexpr size_t kReceives = 3;
  run_loose_flow(
      [&](Sender& end) {
        Buffer memory(end, kCloseSize);
        end.peer.meet();  // the receiver has closed
        end.send(memory.part(0, 0)).finish();
        end.send(memory.part(0, 1)).finish();
        end.send(memory.all()).finish();
        // The receiver had posted three receives: there is none for a fourth send.
        BL_MUST(send_until_error(end, memory.part(0, 0)) == ncclRemoteError);
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
  if (!kProcessesWork) return;  // the log is that of both ends
  run_loose_flow(
      [&](Sender& end) {
        const Pages pages(kCloseSize);
        Mr mr(end.net(), end.comm, pages.data(), kCloseSize);
        end.peer.meet();
        for (size_t i = 0; i < kRequests; ++i) end.send({pages.data(), kCloseSize, 0, mr.raw()});
        mr.drop();
        withdraw(pages, kCloseSize);
        end.comm.close();
        BL_MUST(find_log_lines(NCCL_LOG_WARN).empty());
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

TEST_CASE("close: a sender's requests complete although the receiver is gone",
          "[contract][close]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr std::array<size_t, 4> kSizes = {0, 100, kCloseSize, 1};
  const uint32_t rounds = repetitions(40, 10);
  run_two(
      way.mode,
      [&](Peer& peer) {
        const Session session;
        for (uint32_t round = 0; round < rounds; ++round) {
          const Comm comm = connect_to_peer(peer, session, 0);
          const Buffer memory(session.net(), comm, kCloseSize);
          std::vector<Request> requests;
          for (const size_t size : kSizes) {
            requests.push_back(isend(session.net(), comm, memory.part(0, size)));
          }
          // In every other round the receiver has closed before the sender calls test.
          if (round % 2 == 1) peer.meet();
          finish_all(requests);
          if (round % 2 == 0) peer.meet();
        }
      },
      [&](Peer& peer) {
        const Session session;
        for (uint32_t round = 0; round < rounds; ++round) {
          Comm comm = accept_from_peer(peer, session, last_device(session));
          Buffer memory(session.net(), comm, kCloseSize);
          std::vector<Request> requests;
          for (const size_t size : kSizes) {
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
