// SPDX-License-Identifier: Apache-2.0
//
// Connections that must not be established: the listener is gone, the handle is invalid, or the
// client is no plugin. Each attempt ends soon, and other connections are not disturbed.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "common/base/fd.h"
#include "tests/contract/flow.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline;
using namespace beeline::test;

namespace {

// Calls connect until it fails. It must not succeed.
void must_be_refused(const Session& session, Handle& handle) {
  wait_until(
      [&] {
        const Attempt attempt = at_once([&] { return try_connect(session, 0, handle); });
        BL_MUST(attempt.comm == nullptr);
        return attempt.result != ncclSuccess;
      },
      "connect to fail");
  BL_MUST_SUCCEED(session.net().close_send(nullptr));
}

// The listening sockets of this process, which are the plugin's.
std::vector<sockaddr_storage> listening_addresses() {
  std::vector<sockaddr_storage> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    int listens = 0;
    socklen_t length = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) continue;
    sockaddr_storage address{};
    length = sizeof(address);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    if (address.ss_family == AF_INET || address.ss_family == AF_INET6) found.push_back(address);
  }
  return found;
}

UniqueFd dial(const sockaddr_storage& address) {
  UniqueFd fd(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const socklen_t length =
      address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  BL_MUST(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
  return fd;
}

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

}  // namespace

TEST_CASE("refusal: a listener that is closed refuses", "[contract][refusal]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  run_two(
      way.mode,
      [&](Peer& peer) {
        const Session session(way.abi);
        Handle handle = peer.receive<Handle>(1);
        must_be_refused(session, handle);
        peer.meet();
      },
      [&](Peer& peer) {
        const Session session(way.abi);
        Handle handle{};
        listen(session, 0, &handle).close();
        Handle of_another{};
        const Comm another = listen(session, 0, &of_another);  // the process still listens
        peer.send(0, handle);
        peer.meet();
      });
}

TEST_CASE("refusal: a listener whose process is gone refuses", "[contract][refusal]") {
  if (!kProcessesWork) return;
  constexpr Abi kAbi = Abi::kV12;  // one version only, since the refusal takes a while
  run_processes({[&](Peer& peer) {
                   const Session session(kAbi);
                   Handle handle = peer.receive<Handle>(1);
                   peer.kill(1);
                   must_be_refused(session, handle);
                 },
                 [&](Peer& peer) {
                   const Session session(kAbi);
                   Handle handle{};
                   const Comm listener = listen(session, 0, &handle);
                   peer.send(0, handle);
                   peer.meet();
                 }});
}

TEST_CASE("refusal: an invalid handle is refused with a warning", "[contract][refusal]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const int kind = GENERATE(0x00, 0xFF, 0xA5, -1, -2, -3);
  CAPTURE(abi, kind);
  run_alone([&] {
    const Session session(abi);
    Handle handle{};
    if (kind >= 0) {
      handle.bytes.fill(static_cast<uint8_t>(kind));
    } else {
      std::mt19937 random(static_cast<uint32_t>(-kind));
      const std::string bytes = random_bytes(random, handle.bytes.size());
      std::copy(bytes.begin(), bytes.end(), handle.bytes.begin());
    }
    must_be_refused(session, handle);
    BL_MUST(has_warned({"handle"}));
  });
}

TEST_CASE("refusal: a handle with any byte changed does no harm", "[contract][refusal]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Handle good{};
    Comm listener = listen(session, 0, &good);
    std::vector<Handle> handles(good.bytes.size(), good);
    for (size_t i = 0; i < handles.size(); ++i) {
      handles[i].bytes[i] = static_cast<uint8_t>(handles[i].bytes[i] ^ (1U << (i % 8)));
      for (int turn = 0; turn < 3; ++turn) {
        const Attempt attempt = at_once([&] { return try_connect(session, 0, handles[i]); });
        if (attempt.result != ncclSuccess) break;
        if (attempt.comm == nullptr) continue;
        Comm(session.net(), CommKind::kSend, attempt.comm).close();
        break;
      }
    }
    // All of these connects are abandoned halfway, as by an abort. A valid one must still succeed.
    listener.close();
    const Link link = link_to_self(session);
    must_carry(session.net(), link, 1);
  });
}

TEST_CASE("refusal: strangers on the port disturb nobody", "[contract][refusal]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    Handle handle{};
    Comm listener = listen(session, 0, &handle);
    const std::vector<sockaddr_storage> addresses = listening_addresses();
    BL_MUST(!addresses.empty());
    std::mt19937 random(1);
    const std::vector<std::string> words = {
        "",
        "x",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        std::string(1 << 16, '\0'),
        std::string(1 << 16, '\xFF'),
        random_bytes(random, 40),
        random_bytes(random, 100000),
        std::string(reinterpret_cast<char*>(handle.bytes.data()), handle.bytes.size()),
    };
    std::vector<UniqueFd> strangers;
    for (const sockaddr_storage& address : addresses) {
      for (const std::string& word : words) {
        strangers.push_back(dial(address));
        // The plugin may read it or not.
        (void)::send(strangers.back().get(), word.data(), word.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
    for (int i = 0; i < 100; ++i) {
      const Attempt attempt = at_once([&] { return try_accept(session, listener); });
      BL_MUST(attempt.result == ncclSuccess && attempt.comm == nullptr);
      sched_yield();
    }
    must_carry(session.net(), link_between(session, 0, handle, session, listener), 1);
  });
}

TEST_CASE("refusal: a listener closed while somebody connects leaves nobody waiting",
          "[contract][refusal]") {
  const Way way = GENERATE(from_range(some_ways()));
  const int turns = GENERATE(1, 20);
  CAPTURE(way, turns);
  run_two(
      way.mode,
      [&](Peer& peer) {
        const Session session(way.abi);
        Handle handle = peer.receive<Handle>(1);
        const Attempt first = try_connect(session, 0, handle);
        peer.meet();
        // It may have succeeded before the listener was closed, but it must not stay pending.
        Attempt attempt = first;
        wait_until(
            [&] {
              if (attempt.result == ncclSuccess && attempt.comm == nullptr) {
                attempt = try_connect(session, 0, handle);
              }
              return attempt.result != ncclSuccess || attempt.comm != nullptr;
            },
            "connect to end");
        if (attempt.comm != nullptr) Comm(session.net(), CommKind::kSend, attempt.comm).close();
        peer.meet();
      },
      [&](Peer& peer) {
        const Session session(way.abi);
        Handle handle{};
        Comm listener = listen(session, 0, &handle);
        peer.send(0, handle);
        peer.meet();
        Comm comm;
        for (int i = 0; i < turns && !comm; ++i) {
          const Attempt attempt = try_accept(session, listener);
          BL_MUST_SUCCEED(attempt.result);
          comm = Comm(session.net(), CommKind::kRecv, attempt.comm);
        }
        listener.close();
        peer.meet();
      });
}
