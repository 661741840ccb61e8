// SPDX-License-Identifier: Apache-2.0
//
// listen, connect, accept: none of them blocks, in whatever order the two ends call them.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/contract/flow.h"
#include "tests/support/catch.h"

using namespace beeline::test;

TEST_CASE("connect: a handle stays within its 128 bytes, and no two are alike",
          "[contract][connect]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    std::vector<std::string> handles;
    std::vector<Comm> listeners;
    for (int i = 0; i < 6; ++i) {
      Memory memory(NCCL_NET_HANDLE_MAXSIZE);
      void* comm = nullptr;
      const int dev = i % session.devices();
      BL_MUST_SUCCEED(session.net().listen(session.context(), dev, memory.at(), &comm));
      BL_MUST(comm != nullptr);
      listeners.emplace_back(session.net(), CommKind::kListen, comm);
      handles.emplace_back(reinterpret_cast<char*>(memory.at()), memory.size());
      std::memset(memory.at(), Memory::kFresh, memory.size());
      memory.must_hold();
    }
    std::sort(handles.begin(), handles.end());
    BL_MUST(std::adjacent_find(handles.begin(), handles.end()) == handles.end());
    for (Comm& listener : listeners) listener.close();
  });
}

TEST_CASE("connect: one thread may hold both ends", "[contract][connect]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    for (int send_dev = 0; send_dev < session.devices(); ++send_dev) {
      for (int recv_dev = 0; recv_dev < session.devices(); ++recv_dev) {
        const Link link = link_to_self(session, send_dev, recv_dev);
        must_carry(session.net(), link, static_cast<uint32_t>(send_dev * 2 + recv_dev));
      }
    }
  });
}

TEST_CASE("connect: NCCL_IB_GID_INDEX is for RoCE, and InfiniBand connects in spite of it",
          "[contract][connect][softnic]") {
  if (!kProcessesWork) return;  // the plugin reads its environment once
  run_alone([&] {
    setenv("NCCL_IB_GID_INDEX", "3", 1);  // an InfiniBand port here has one GID
    const Session session(main_abis().front());
    must_carry(session.net(), link_to_self(session, 0, 0), 1);
  });
}

TEST_CASE("connect: accept without a peer returns at once, without a comm", "[contract][connect]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Handle handle{};
    Comm listener = listen(session, 0, &handle);
    for (int i = 0; i < 1000; ++i) {
      const Attempt attempt = at_once([&] { return try_accept(session, listener); });
      BL_MUST(attempt.result == ncclSuccess && attempt.comm == nullptr);
    }
    at_once([&] { return (listener.close(), true); });
  });
}

TEST_CASE("connect: neither end waits for the other, in whatever order they call",
          "[contract][connect]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const int turns = GENERATE(1, 5, 1000);  // calls of one end before the other calls
  const bool sender_first = GENERATE(true, false);
  CAPTURE(abi, turns, sender_first);
  run_alone([&] {
    const Session session(abi);
    Handle handle{};
    Comm listener = listen(session, 0, &handle);
    Attempt out{};
    Attempt in{};
    const auto step = [&](bool is_sender) {
      Attempt& attempt = is_sender ? out : in;
      if (attempt.comm != nullptr) return;
      attempt = at_once([&] {
        return is_sender ? try_connect(session, 0, handle) : try_accept(session, listener);
      });
      BL_MUST_SUCCEED(attempt.result);
    };
    wait_until(
        [&] {
          for (int i = 0; i < turns; ++i) step(sender_first);
          for (int i = 0; i < turns; ++i) step(!sender_first);
          return out.comm != nullptr && in.comm != nullptr;
        },
        "both ends");
    const Link link{{session.net(), CommKind::kSend, out.comm},
                    {session.net(), CommKind::kRecv, in.comm}};
    must_carry(session.net(), link, 1);
  });
}

TEST_CASE("connect: many connections are made at once in any order", "[contract][connect]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const uint32_t seed = GENERATE(1U, 2U, 3U);
  CAPTURE(abi, seed);
  run_alone([&] {
    constexpr size_t kPairs = 16;
    struct Pair {
      Handle handle{};
      Comm listener;
      Comm send;
      Comm recv;
    };
    const Session session(abi);
    std::mt19937 random(seed);
    std::vector<Pair> pairs(kPairs);
    for (size_t i = 0; i < kPairs; ++i) {
      pairs[i].listener = listen(session, static_cast<int>(i / 2 % 2), &pairs[i].handle);
    }
    std::vector<size_t> steps(2 * kPairs);
    std::iota(steps.begin(), steps.end(), size_t{0});
    wait_until(
        [&] {
          std::shuffle(steps.begin(), steps.end(), random);
          for (const size_t step : steps) {
            Pair& pair = pairs[step / 2];
            const bool is_sender = step % 2 == 0;
            if (is_sender ? static_cast<bool>(pair.send) : static_cast<bool>(pair.recv)) continue;
            const int dev = static_cast<int>(step / 2 % 2);
            const Attempt attempt = at_once([&] {
              return is_sender ? try_connect(session, dev, pair.handle)
                               : try_accept(session, pair.listener);
            });
            BL_MUST_SUCCEED(attempt.result);
            if (attempt.comm == nullptr) continue;
            (is_sender ? pair.send : pair.recv) =
                Comm(session.net(), is_sender ? CommKind::kSend : CommKind::kRecv, attempt.comm);
          }
          return std::all_of(pairs.begin(), pairs.end(),
                             [](const Pair& pair) { return pair.send && pair.recv; });
        },
        "all pairs");
    for (size_t i = 0; i < kPairs; ++i) {
      const Link link{std::move(pairs[i].send), std::move(pairs[i].recv)};
      must_carry(session.net(), link, static_cast<uint32_t>(i));
    }
  });
}

TEST_CASE("connect: each connector gets the listener whose handle it has", "[contract][connect]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr size_t kComms = 6;
  constexpr size_t kSize = 64;
  run_two(
      way.mode,
      [&](Peer& peer) {
        const Session session(way.abi);
        std::vector<Handle> handles;
        for (size_t i = 0; i < kComms; ++i) handles.push_back(peer.receive<Handle>(1));
        // The receiver accepts in the order in which it listened; connect in the opposite order.
        std::vector<Comm> comms(kComms);
        wait_until(
            [&] {
              bool all = true;
              for (size_t i = kComms; i-- > 0;) {
                if (comms[i]) continue;
                const Attempt attempt = try_connect(session, 0, handles[i]);
                BL_MUST_SUCCEED(attempt.result);
                comms[i] = Comm(session.net(), CommKind::kSend, attempt.comm);
                all = all && comms[i];
              }
              return all;
            },
            "all connections");
        for (size_t i = 0; i < kComms; ++i) {
          Buffer from(session.net(), comms[i], kSize);
          from.fill(0, kSize, static_cast<uint32_t>(i));
          isend(session.net(), comms[i], from.all()).finish();
        }
        peer.meet();
      },
      [&](Peer& peer) {
        const Session session(way.abi);
        std::vector<Comm> listeners;
        for (size_t i = 0; i < kComms; ++i) {
          Handle handle{};
          listeners.push_back(listen(session, 0, &handle));
          peer.send(0, handle);
        }
        std::vector<Comm> comms;
        comms.reserve(kComms);
        for (const Comm& listener : listeners) comms.push_back(accept(session, listener));
        for (size_t i = 0; i < kComms; ++i) {
          Buffer to(session.net(), comms[i], kSize);
          to.expect(0, kSize, static_cast<uint32_t>(i));
          irecv(session.net(), comms[i], to.all()).finish();
          to.must_hold();
        }
        peer.meet();
      });
}

TEST_CASE("connect: the argument for a device handle may be NULL", "[contract][connect]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Net& net = session.net();
    Handle handle{};
    Comm listener = listen(session, 0, &handle);
    void* out = nullptr;
    void* in = nullptr;
    wait_until(
        [&] {
          if (out == nullptr) {
            BL_MUST_SUCCEED(net.connect(session.context(), 0, handle.bytes.data(), &out, nullptr));
          }
          if (in == nullptr) BL_MUST_SUCCEED(net.accept(listener.raw(), &in, nullptr));
          return out != nullptr && in != nullptr;
        },
        "a connection");
    const Link link{{net, CommKind::kSend, out}, {net, CommKind::kRecv, in}};
    must_carry(net, link, 3);
  });
}
