// SPDX-License-Identifier: Apache-2.0
//
// A peer dies by SIGKILL in the middle of a transfer. The survivor's retries fail, and it then
// connects its queue pair to a new process.
#include <atomic>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kBig = 4u << 20;
constexpr Wire kQuick{.timeout = 19, .retry_cnt = 2};  // 64 ms on the fast clock
constexpr double kClock = 0.01;

// Writes until a request fails, and returns its status.
ibv_wc_status write_until_failure(Endpoint& end, const Region& from, const Region& to) {
  for (;;) {
    BL_MUST_OK(post(end.qp, write_work(from, to)));
    const ibv_wc wc = poll_one(end.send_cq.get());
    if (wc.status != IBV_WC_SUCCESS) return wc.status;
  }
}

// A target that sends its address and lives until it is told to end or killed.
PeerBody target_for(std::size_t writer) {
  return [writer](Peer& peer) {
    peer.receive<bool>(writer);
    Endpoint end("softnic1");
    Buffer memory = end.buffer(kBig);
    peer.send(writer, address_of(end.qp, kQuick));
    connect(end.qp, peer.receive<QpAddress>(writer), kQuick);
    peer.send(writer, memory.all());
    wait_until([&] { return memory.peek(kBig - 1) != 0; }, "the first write");
    peer.send(writer, true);
    peer.receive<bool>(writer);
  };
}

Region reach(Peer& peer, std::size_t target, Endpoint& end) {
  peer.send(target, true);
  const auto theirs = peer.receive<QpAddress>(target);
  connect(end.qp, theirs, kQuick);
  peer.send(target, address_of(end.qp, kQuick));
  return peer.receive<Region>(target);
}

}  // namespace

TEST_CASE("fabric_death: a writer outlives its target and finds a new one", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric(kClock);
  const PeerBody writer = [](Peer& peer) {
    Endpoint end("softnic0");
    Buffer from = end.buffer(kBig);
    std::fill_n(from.data(), kBig, std::uint8_t{1});
    for (std::size_t target = 1; target <= 3; ++target) {
      const Region to = reach(peer, target, end);
      BL_MUST_OK(post(end.qp, write_work(from.all(), to, target)));
      must_complete(end.send_cq.get(), target);
      peer.receive<bool>(target);
      for (std::uint64_t i = 0; i < 20; ++i)
        BL_MUST_OK(post(end.qp, write_work(from.all(), to, i)));
      peer.kill(target);
      // Some of the twenty may have succeeded. The first that fails has the status, the others are
      // flushed.
      auto done = poll_many(end.send_cq.get(), 20);
      if (done.back().status == IBV_WC_SUCCESS) {
        BL_MUST(write_until_failure(end, from.all(), to) == IBV_WC_RETRY_EXC_ERR);
        continue;
      }
      const auto first = std::find_if(done.begin(), done.end(),
                                      [](const ibv_wc& wc) { return wc.status != IBV_WC_SUCCESS; });
      BL_MUST(first->status == IBV_WC_RETRY_EXC_ERR);
      BL_MUST(std::all_of(first + 1, done.end(),
                          [](const ibv_wc& wc) { return wc.status == IBV_WC_WR_FLUSH_ERR; }));
    }
  };
  run_peers(PeerMode::kProcesses, {writer, target_for(0), target_for(0), target_for(0)});
}

TEST_CASE("fabric_death: a target outlives its writer and serves a new one", "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric(kClock);
  constexpr std::size_t kTarget = 0;
  const PeerBody target = [](Peer& peer) {
    Endpoint end("softnic1");
    Buffer memory = end.buffer(kBig);
    for (std::size_t writer = 1; writer <= 3; ++writer) {
      std::fill_n(memory.data(), kBig, std::uint8_t{0});
      peer.send(writer, address_of(end.qp, kQuick));
      connect(end.qp, peer.receive<QpAddress>(writer), kQuick);
      peer.send(writer, memory.all());
      wait_until([&] { return memory.peek(kBig / 2) == writer; }, "the writer's bytes");
      peer.kill(writer);
      // The last write of the dead process may have stopped anywhere, but no byte arrives any more.
      BL_MUST(state_of(end.qp) == IBV_QPS_RTS);
      std::fill_n(memory.data(), kBig, std::uint8_t{0});
    }
    BL_MUST(memory.is_zero(0, kBig));
  };
  const PeerBody writer = [](Peer& peer) {
    const auto theirs = peer.receive<QpAddress>(kTarget);
    Endpoint end("softnic0");
    Buffer from = end.buffer(kBig);
    std::fill_n(from.data(), kBig, static_cast<std::uint8_t>(peer.rank()));
    connect(end.qp, theirs, kQuick);
    peer.send(kTarget, address_of(end.qp, kQuick));
    write_until_failure(end, from.all(), peer.receive<Region>(kTarget));
  };
  run_peers(PeerMode::kProcesses, {target, writer, writer, writer});
}

TEST_CASE("fabric_death: the death of one peer does not affect another connection",
          "[softnic][fabric]") {
  if (!kProcessesWork) return;
  const TestFabric fabric(kClock);
  const PeerBody writer = [](Peer& peer) {
    Endpoint doomed("softnic0");
    Endpoint healthy("softnic0");
    Buffer from_doomed = doomed.buffer(kBig);
    Buffer from_healthy = healthy.buffer(kBig);
    std::fill_n(from_doomed.data(), kBig, std::uint8_t{1});
    from_healthy.fill(5);
    from_healthy.data()[kBig - 1] = 1;
    const Region to_doomed = reach(peer, 1, doomed);
    const Region to_healthy = reach(peer, 2, healthy);
    BL_MUST_OK(post(doomed.qp, write_work(from_doomed.all(), to_doomed)));
    BL_MUST(poll_one(doomed.send_cq.get()).status == IBV_WC_SUCCESS);
    peer.receive<bool>(1);
    peer.kill(1);
    BL_MUST_OK(post(doomed.qp, write_work(from_doomed.all(), to_doomed)));
    for (std::uint64_t i = 0; i < 30; ++i) {
      BL_MUST_OK(post(healthy.qp, write_work(from_healthy.all(), to_healthy, i)));
      must_complete(healthy.send_cq.get(), i);
    }
    BL_MUST(poll_one(doomed.send_cq.get()).status == IBV_WC_RETRY_EXC_ERR);
    peer.receive<bool>(2);
    peer.send(2, true);
  };
  run_peers(PeerMode::kProcesses, {writer, target_for(0), target_for(0)});
}
