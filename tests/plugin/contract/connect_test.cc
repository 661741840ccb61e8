// SPDX-License-Identifier: Apache-2.0
//
// listen, connect, accept: none of them blocks, in whatever order the two ends call them.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/plugin/contract/flow.h"
#include "tests/support/catch.h"

using namespace beeline::test;

TEST_CASE("connect: a handle stays within its 128 bytes, and no two are alike",
          "[contract][connect]") {
  run_alone([&] {
    const Session session;
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

TEST_CASE("connect: neither end waits for the other, in whatever order they call",
          "[contract][connect]") {
  const int turns = GENERATE(1, 5, 1000);  // calls of one end before the other calls
  const bool sender_first = GENERATE(true, false);
  CAPTURE(turns, sender_first);
  run_alone([&] {
    const Session session;
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
  run_alone([&] {
    constexpr size_t kPairs = 16;
    struct Pair {
      Handle handle{};
      Comm listener;
      Comm send;
      Comm recv;
    };
    const Session session;
    std::mt19937 random(1);
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
