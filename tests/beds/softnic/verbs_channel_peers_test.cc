// SPDX-License-Identifier: Apache-2.0
//
// Completion channels between two programs that sleep whenever there is nothing to poll: each of
// them is always woken, by messages and by failures of the other.
#include "tests/beds/softnic/sleeper.h"
#include "tests/support/peer_group.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kMessage = 32;

// Sends and receives in turn, and assumes that every event comes with a completion, as many
// programs do. It runs long enough for many runs of the watch job of an armed queue (Cq::run_job).
void play_in_turn(Peer& peer, const char* device, std::uint64_t count) {
  Sleeper end(device);
  connect(end.qp, peer.exchange(address_of(end.qp)));
  BL_MUST_OK(post(end.qp, RecvWork{}));
  arm(end.recv_cq.get());
  peer.meet();
  for (std::uint64_t turn = 0; turn < 2 * count; ++turn) {
    if (turn % 2 == peer.rank()) {
      BL_MUST_OK(post(end.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = turn}));
      must_complete(end.send_cq.get(), turn);
      continue;
    }
    end.must_wake_for(end.recv_cq);
    BL_MUST_OK(post(end.qp, RecvWork{}));
    arm(end.recv_cq.get());
    ibv_wc wc{};
    BL_MUST(ibv_poll_cq(end.recv_cq.get(), 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
  }
}

// Sends and receives `count` messages, `window` at a time in each direction. Sleeps whenever there
// is nothing to do, in the documented order: arm, poll until empty, sleep.
void play_asleep(Peer& peer, const char* device, std::uint64_t count, std::uint64_t window) {
  // A message is sent when the one a window before has been answered. The answer may arrive before
  // the completion that frees its receive, so there are receives for twice the window.
  const std::uint64_t room = 2 * window;
  Sleeper end(device, {.cqe = 128});
  Buffer out(end.pd.get(), room * kMessage);
  Buffer in(end.pd.get(), room * kMessage);
  connect(end.qp, peer.exchange(address_of(end.qp)));
  std::uint64_t sent = 0;
  std::uint64_t done = 0;
  std::uint64_t received = 0;
  std::uint64_t posted = 0;
  const auto part = [&](Buffer& buffer, std::uint64_t n) {
    return buffer.part(n % room * kMessage, kMessage);
  };
  const auto refill = [&] {
    for (; posted < received + room && posted < count; ++posted) {
      BL_MUST_OK(post(end.qp, recv_work(part(in, posted), posted)));
    }
    for (; sent < count && sent < done + window && sent < received + window; ++sent) {
      fill_pattern(out.bytes(sent % room * kMessage, kMessage), static_cast<std::uint32_t>(sent));
      BL_MUST_OK(post(end.qp, send_work(part(out, sent), sent)));
    }
  };
  const auto drain = [&] {
    ibv_wc wc{};
    for (bool more = true; more;) {
      more = false;
      while (ibv_poll_cq(end.send_cq.get(), 1, &wc) == 1) {
        BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == done++);
        more = true;
      }
      while (ibv_poll_cq(end.recv_cq.get(), 1, &wc) == 1) {
        BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == received);
        BL_MUST(has_pattern(in.bytes(received % room * kMessage, kMessage),
                            static_cast<std::uint32_t>(received)));
        ++received;
        more = true;
      }
      refill();
    }
  };
  arm(end.send_cq.get());
  arm(end.recv_cq.get());
  refill();
  peer.meet();
  drain();
  while (done < count || received < count) {
    ibv_cq* cq = next_cq_event(end.channel.get());
    ibv_ack_cq_events(cq, 1);
    arm(cq);
    drain();
  }
  peer.meet();
}

// A peer causes an error while this end sleeps.
void wake_by_breaking(PeerMode mode, int solicited_only) {
  const TestFabric fabric;
  run_peers(mode, {[](Peer& peer) {
                     Endpoint end("softnic0");
                     Buffer local = end.buffer(8);
                     connect(end.qp, peer.exchange(address_of(end.qp)));
                     auto theirs = peer.receive<Region>(1);
                     theirs.rkey += 0x100;
                     BL_MUST_OK(post(end.qp, write_work(local.all(), theirs, 1)));
                     BL_MUST(poll_one(end.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
                     peer.meet();
                   },
                   [=](Peer& peer) {
                     Sleeper end("softnic1");
                     Buffer memory(end.pd.get(), 8);
                     connect(end.qp, peer.exchange(address_of(end.qp)));
                     for (std::uint64_t i = 0; i < 3; ++i) {
                       BL_MUST_OK(post(end.qp, RecvWork{.wr_id = i}));
                     }
                     arm(end.recv_cq.get(), solicited_only);
                     peer.send(0, memory.all());
                     end.must_wake_for(end.recv_cq);  // no other verb is called meanwhile
                     for (std::uint64_t i = 0; i < 3; ++i) {
                       const ibv_wc wc = poll_one(end.recv_cq.get());
                       BL_MUST(wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR);
                     }
                     peer.meet();
                   }});
}

}  // namespace

TEST_CASE("channel: two programs that sleep between messages are always woken",
          "[softnic][channel]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const auto window = GENERATE(std::uint64_t{1}, std::uint64_t{16});
  constexpr std::uint64_t kMessages = 10000;
  const TestFabric fabric;
  run_peers(mode, {[=](Peer& peer) { play_asleep(peer, "softnic0", kMessages, window); },
                   [=](Peer& peer) { play_asleep(peer, "softnic1", kMessages, window); }});
}

TEST_CASE("channel: in a ping-pong every message is one event", "[softnic][channel]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  const TestFabric fabric;
  run_peers(mode, {[](Peer& peer) { play_in_turn(peer, "softnic0", 40'000); },
                   [](Peer& peer) { play_in_turn(peer, "softnic1", 40'000); }});
}

TEST_CASE("channel: a queue pair that its peer moves to ERR wakes the program",
          "[softnic][channel]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  wake_by_breaking(mode, GENERATE(0, 1));
}

TEST_CASE("channel: the death of its peer wakes a sender", "[softnic][channel]") {
  if (!kProcessesWork) return;
  const bool early = GENERATE(true, false);
  const TestFabric fabric(0.01);
  const Wire wire{.timeout = 17, .retry_cnt = 1};
  run_peers(PeerMode::kProcesses,
            {[&](Peer& peer) {
               Sleeper end("softnic0");
               connect(end.qp, peer.exchange(address_of(end.qp)), wire);
               if (early) peer.kill(1);
               arm(end.send_cq.get());
               // With the peer alive, the message gets RNR NAKs; without it, no answer.
               BL_MUST_OK(post(end.qp, SendWork{.opcode = IBV_WR_SEND, .wr_id = 1}));
               if (!early) peer.kill(1);
               end.must_wake_for(end.send_cq);
               const ibv_wc wc = poll_one(end.send_cq.get());
               BL_MUST(wc.status == IBV_WC_RETRY_EXC_ERR && wc.wr_id == 1);
             },
             [&](Peer& peer) {
               const Endpoint end("softnic1");
               connect(end.qp, peer.exchange(address_of(end.qp)), wire);
               peer.receive<bool>(0);  // never comes
             }});
}
