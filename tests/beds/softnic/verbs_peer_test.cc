// SPDX-License-Identifier: Apache-2.0
//
// The main operations between two threads with separate contexts, and between two processes.
#include <atomic>
#include <cstring>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kPeerBig = (1u << 20) + 3;

// The state of each end after the handshake: a connected QP, and a region of the other end.
struct Party {
  Party(Peer& peer, const char* device, std::size_t size) : end(device), mine(end.buffer(size)) {
    connect(end.qp, peer.exchange(address_of(end.qp)));
    theirs = peer.exchange(mine.all());
    peer.meet();
  }

  Endpoint end;
  Buffer mine;
  Region theirs;
};

void run_pair(PeerMode mode, const PeerBody& active, const PeerBody& passive) {
  const TestFabric fabric;
  run_peers(mode, {active, passive});
}

}  // namespace

TEST_CASE("peer: WRITE and READ need no action of the target's program", "[softnic][peer]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  run_pair(
      mode,
      [](Peer& peer) {
        Party party(peer, "softnic0", kPeerBig);
        Buffer back = party.end.buffer(kPeerBig);
        party.mine.fill(1);
        BL_MUST_OK(post(party.end.qp, write_work(party.mine.all(), party.theirs, 1)));
        must_complete(party.end.send_cq.get(), 1);
        BL_MUST_OK(post(party.end.qp, read_work(back.all(), party.theirs, 2)));
        must_complete(party.end.send_cq.get(), 2);
        BL_MUST(back.has(1));
        peer.send(1, true);
      },
      [](Peer& peer) {
        Party party(peer, "softnic1", kPeerBig);
        peer.receive<bool>(0);  // blocked in a socket meanwhile
        BL_MUST(party.mine.has(1));
        BL_MUST(is_empty(party.end.recv_cq.get()));
      });
}

TEST_CASE("peer: messages of all sizes arrive complete and in order", "[softnic][peer]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  static constexpr std::size_t kSizes[] = {0, 1, 7, 4096, (64u << 10) + 1, kPeerBig};
  constexpr std::uint32_t kRounds = 5;
  run_pair(
      mode,
      [](Peer& peer) {
        Party party(peer, "softnic0", kPeerBig);
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          party.mine.fill(round);
          for (const std::size_t size : kSizes) {
            BL_MUST_OK(post(party.end.qp, send_imm_work(party.mine.part(0, size), round, size)));
            must_complete(party.end.send_cq.get(), size);
          }
        }
        peer.meet();  // a destroyed queue pair acknowledges nothing
      },
      [](Peer& peer) {
        Party party(peer, "softnic1", kPeerBig);
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          for (const std::size_t size : kSizes) {
            // Posted late on purpose, so that the sender gets RNR NAKs and retries.
            BL_MUST_OK(post(party.end.qp, recv_work(party.mine.all(), size)));
            const ibv_wc wc = poll_one(party.end.recv_cq.get());
            BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == size && wc.byte_len == size);
            BL_MUST(wc.imm_data == round);
            BL_MUST(has_pattern(party.mine.bytes(0, size), round));
          }
        }
        peer.meet();
      });
}

TEST_CASE("peer: WRITE with immediate completes after the data has arrived", "[softnic][peer]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  constexpr std::uint32_t kRounds = 20;
  run_pair(
      mode,
      [](Peer& peer) {
        Party party(peer, "softnic0", kPeerBig);
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          party.mine.fill(round);
          BL_MUST_OK(
              post(party.end.qp, write_imm_work(party.mine.all(), party.theirs, round, round)));
          must_complete(party.end.send_cq.get(), round);
          peer.receive<std::uint32_t>(1);  // the reader is done with the buffer
        }
      },
      [](Peer& peer) {
        Party party(peer, "softnic1", kPeerBig);
        for (std::uint32_t round = 0; round < kRounds; ++round) {
          BL_MUST_OK(post(party.end.qp, RecvWork{.wr_id = round}));
          const ibv_wc wc = poll_one(party.end.recv_cq.get());
          BL_MUST(wc.status == IBV_WC_SUCCESS && wc.imm_data == round && wc.byte_len == kPeerBig);
          BL_MUST(party.mine.has(round));
          peer.send(0, round);
        }
      });
}

TEST_CASE("peer: two programs play ping-pong through memory alone", "[softnic][peer]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  constexpr std::uint64_t kTurns = 500;
  const auto play = [](Peer& peer, const char* device, bool serves) {
    Party party(peer, device, 16);
    // The received word is at 8, the word to send at 0.
    auto* words = reinterpret_cast<std::uint64_t*>(party.mine.data());
    std::atomic_ref<std::uint64_t> ball(words[1]);
    for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
      if (!serves) wait_until([&] { return ball.load() == turn; }, "the ball");
      words[0] = turn;
      BL_MUST_OK(
          post(party.end.qp, write_work(party.mine.part(0, 8), party.theirs.moved(8, 8), turn)));
      must_complete(party.end.send_cq.get(), turn);
      if (serves) wait_until([&] { return ball.load() == turn; }, "the ball");
    }
    peer.meet();  // neither end leaves before the last message has arrived
  };
  run_pair(
      mode, [&](Peer& peer) { play(peer, "softnic0", true); },
      [&](Peer& peer) { play(peer, "softnic1", false); });
}

TEST_CASE("peer: an aligned word is never seen partly written", "[softnic][peer]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  constexpr std::uint64_t kWrites = 1000;
  run_pair(
      mode,
      [](Peer& peer) {
        Party party(peer, "softnic0", 16);
        auto* words = reinterpret_cast<std::uint64_t*>(party.mine.data());
        for (std::uint64_t i = 1; i <= kWrites; ++i) {
          words[0] = i == kWrites ? 1 : (i % 2 == 0 ? 0 : ~std::uint64_t{0});
          BL_MUST_OK(
              post(party.end.qp, write_work(party.mine.part(0, 8), party.theirs.moved(8, 8), i)));
          must_complete(party.end.send_cq.get(), i);
        }
        peer.meet();
      },
      [](Peer& peer) {
        Party party(peer, "softnic1", 16);
        std::atomic_ref<std::uint64_t> word(reinterpret_cast<std::uint64_t*>(party.mine.data())[1]);
        wait_until(
            [&] {
              const std::uint64_t now = word.load();
              BL_MUST(now == 0 || now == ~std::uint64_t{0} || now == 1);
              return now == 1;
            },
            "the last word");
        peer.meet();
      });
}

TEST_CASE("peer: a flag that is written after data arrives after it", "[softnic][peer]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  constexpr std::uint32_t kRounds = 30;
  constexpr std::size_t kData = 100000;
  run_pair(
      mode,
      [](Peer& peer) {
        Party party(peer, "softnic0", kData + 8);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          fill_pattern(party.mine.bytes(0, kData), round);
          party.mine.data()[kData] = static_cast<std::uint8_t>(round);
          BL_MUST_OK(post_list(
              party.end.qp,
              {unsignaled(write_work(party.mine.part(0, kData), party.theirs)),
               write_work(party.mine.part(kData, 1), party.theirs.moved(kData, 1), round)}));
          must_complete(party.end.send_cq.get(), round);
          peer.receive<std::uint32_t>(1);
        }
      },
      [](Peer& peer) {
        Party party(peer, "softnic1", kData + 8);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
          wait_until([&] { return party.mine.peek(kData) == round; }, "the flag");
          BL_MUST(has_pattern(party.mine.bytes(0, kData), round));
          peer.send(0, round);
        }
      });
}

TEST_CASE("peer: at the moment of a sender's completion the data is on the other side",
          "[softnic][peer]") {
  const bool reading = GENERATE(false, true);
  constexpr std::size_t kSize = 200000;  // more than a post transfers before it returns
  Pair pair;
  Buffer here = pair.a.buffer(kSize);
  Buffer there = pair.b.buffer(kSize);
  Buffer& source = reading ? there : here;
  Buffer& target = reading ? here : there;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    std::memset(source.data(), static_cast<int>(round), kSize);
    REQUIRE(post(pair.a.qp, reading ? read_work(here.all(), there.all(), round)
                                    : write_work(here.all(), there.all(), round)) == 0);
    must_complete(pair.a.send_cq.get(), round);
    const std::uint8_t last = target.peek(kSize - 1);
    REQUIRE(last == static_cast<std::uint8_t>(round));
  }
}

TEST_CASE("peer: both directions at once, with several messages in flight", "[softnic][peer]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  constexpr std::uint64_t kMessages = 300;
  constexpr std::size_t kSlots = 8;
  constexpr std::size_t kSlot = 20000;
  const auto play = [](Peer& peer, const char* device) {
    Party party(peer, device, kSlots * kSlot);
    Buffer out = party.end.buffer(kSlots * kSlot);
    const auto repost = [&](std::uint64_t n) {
      BL_MUST_OK(post(party.end.qp, recv_work(party.mine.part(n % kSlots * kSlot, kSlot), n)));
    };
    for (std::uint64_t n = 0; n < kSlots; ++n) repost(n);
    std::uint64_t sent = 0;
    std::uint64_t done = 0;
    std::uint64_t received = 0;
    wait_until(
        [&] {
          while (sent < kMessages && sent - done < kSlots) {
            fill_pattern(out.bytes(sent % kSlots * kSlot, kSlot), static_cast<std::uint32_t>(sent));
            BL_MUST_OK(post(party.end.qp, send_work(out.part(sent % kSlots * kSlot, kSlot), sent)));
            ++sent;
          }
          ibv_wc wc{};
          if (ibv_poll_cq(party.end.send_cq.get(), 1, &wc) == 1) {
            BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == done++);
          }
          if (ibv_poll_cq(party.end.recv_cq.get(), 1, &wc) == 1) {
            BL_MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == received && wc.byte_len == kSlot);
            BL_MUST(has_pattern(party.mine.bytes(received % kSlots * kSlot, kSlot),
                                static_cast<std::uint32_t>(received)));
            repost(kSlots + received++);
          }
          return done == kMessages && received == kMessages;
        },
        "all messages of both directions");
    peer.meet();
  };
  run_pair(
      mode, [&](Peer& peer) { play(peer, "softnic0"); },
      [&](Peer& peer) { play(peer, "softnic1"); });
}

TEST_CASE("peer: several threads use their own queue pairs of one context", "[softnic][peer]") {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kEach = 200;
  const TestFabric fabric;
  const Nic a("softnic0");
  const Nic b("softnic1");
  std::vector<PeerBody> bodies(kThreads, [&](Peer& peer) {
    const Nic own("softnic0");  // opens and closes a device during the others' traffic
    const CqPtr cq = make_cq(a.context.get(), 16);
    ibv_qp_init_attr init = init_attr(a);
    init.send_cq = cq.get();
    const QpPtr from_qp(ibv_create_qp(a.pd.get(), &init));
    const QpPtr to_qp = make_qp(b);
    connect_both(from_qp.get(), to_qp.get());
    Buffer from(a.pd.get(), 1000);
    Buffer into(b.pd.get(), 1000);
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const auto seed = static_cast<std::uint32_t>(i * kThreads + peer.rank());
      from.fill(seed);
      BL_MUST_OK(post(from_qp.get(), write_work(from.all(), into.all(), i)));
      must_complete(cq.get(), i);
      BL_MUST(into.has(seed));
    }
  });
  run_peers(PeerMode::kThreads, bodies);
}

TEST_CASE("peer: threads that share a queue pair lose no work", "[softnic][peer]") {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kEach = 300;
  Pair pair({.shape = {.send_depth = kThreads * kEach, .cqe = kThreads * kEach}});
  std::vector<PeerBody> bodies(kThreads, [&](Peer& peer) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      BL_MUST_OK(post(pair.a.qp, nothing_work(peer.rank() * kEach + i)));
    }
  });
  run_peers(PeerMode::kThreads, bodies);
  std::vector<std::uint64_t> next(kThreads, 0);
  for (const ibv_wc& wc : poll_many(pair.a.send_cq.get(), kThreads * kEach)) {
    CHECK(wc.status == IBV_WC_SUCCESS);
    const std::uint64_t thread = wc.wr_id / kEach;
    CHECK(wc.wr_id % kEach == next.at(thread)++);  // in the order of each thread
  }
}

TEST_CASE("peer: a forked child may destroy what it inherited", "[softnic][peer]") {
  if (!kProcessesWork) return;
  constexpr std::size_t kSize = 8u << 20;
  Pair pair;
  Buffer from = pair.a.buffer(kSize);
  Buffer into = pair.b.buffer(kSize);
  for (std::uint32_t round = 0; round < 8; ++round) {
    from.fill(round);
    for (int i = 0; i < 4; ++i) REQUIRE(post(pair.a.qp, write_work(from.all(), into.all())) == 0);
    run_peers(PeerMode::kProcesses, {[&](Peer&) {
                pair.a.owned_qp.reset();
                pair.b.owned_qp.reset();
                from.deregister();
                into.deregister();
                pair.a.send_cq.reset();
              }});
    for (int i = 0; i < 4; ++i) must_complete(pair.a.send_cq.get(), 0);
    REQUIRE(into.has(round));
  }
}
