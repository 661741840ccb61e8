// SPDX-License-Identifier: Apache-2.0
//
// fork() in the middle of a handshake: the child has copies of all memory and descriptors, and no
// threads. It must not disturb its parent, and may begin connections of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/plugin/component/connect_raw_peer.h"

using namespace beeline;
using namespace beeline::test;

namespace {

constexpr OwnerId kOwner = 7;

// Runs the body in a forked child, which must exit by itself with status 0.
void in_child(const std::function<void()>& body) {
  const pid_t child = fork();
  BL_MUST(child >= 0);
  if (child == 0) {
    alarm(static_cast<unsigned>(std::chrono::seconds(kPatience).count()));
    try {
      body();
      _exit(0);
    } catch (const std::exception&) {
      _exit(1);
    }
  }
  int status = 0;
  BL_MUST(waitpid(child, &status, 0) == child);
  BL_MUST(status == 0);
}

// Everything that a child may do with the objects that it has inherited.
void meddle(Party& party, Listener* listener, Ticket& ticket) {
  BL_MUST(!party.accept(listener));
  party.plane().close(listener);
  party.plane().reclaim(kOwner);
  // The attempt in the handle is its parent's, so this begins a new one.
  BL_MUST(must(party.connect(ticket, "softnic1", {.owner = kOwner})) == nullptr);
}

}  // namespace

TEST_CASE("fork: a child in the middle of a connect does not disturb its parent",
          "[component][connect]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer&) {
              const auto table = scan(fabric);
              Party b(*table);
              Ticket unused;
              Listener* const listener = b.listen(unused);
              FakeListener fake;
              BL_MUST(must(b.connect(fake.ticket(), "softnic1", {.owner = kOwner})) == nullptr);
              RawPeer peer = fake.welcome();
              const auto connect = peer.receive_message<wire::Connect>();
              in_child([&] { meddle(b, listener, fake.ticket()); });
              peer.send(wire::encode(accept_for(connect)));
              const ConnectionPtr made = b.wait_connect(fake.ticket());
              BL_MUST(peer.receive_message<wire::Ready>().comm == accept_for(connect).our_comm);
              b.plane().close(listener);
            }});
}

TEST_CASE("fork: a child does not take a connection that its parent has not accepted yet",
          "[component][connect]") {
  if (!kProcessesWork) return;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer&) {
              const auto table = scan(fabric);
              Party a(*table);
              Party b(*table);
              Ticket ticket;
              Listener* const listener = a.listen(ticket);
              const ConnectionPtr sender = b.wait_connect(ticket);
              in_child([&] { meddle(a, listener, ticket); });
              const ConnectionPtr receiver = a.wait_accept(listener);
              prove_write(*receiver, *sender);
              a.plane().close(listener);
            }});
}

namespace {

// Opens and closes listeners in another thread, so that locks may be held at any fork.
class Busy {
 public:
  explicit Busy(Party& party) : thread_([this, &party] { work(party); }) {}
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    stop_ = true;
    thread_.join();
  }

 private:
  void work(Party& party) {
    while (!stop_) {
      Ticket ticket;
      party.plane().close(party.listen(ticket));
    }
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("fork: a child can listen, whatever its parent's threads were doing",
          "[component][connect]") {
  if (!kForkBesideThreadsWorks) return;
  const TestFabric fabric;
  run_peers(PeerMode::kProcesses, {[&](Peer&) {
              const auto table = scan(fabric);
              Party a(*table);
              const Busy busy(a);
              for (int i = 0; i < 20; ++i) {
                in_child([&] {
                  Ticket ticket;
                  Listener* const listener = a.listen(ticket);
                  BL_MUST(must(a.accept(listener)) == nullptr);
                  a.plane().close(listener);
                });
              }
            }});
}
