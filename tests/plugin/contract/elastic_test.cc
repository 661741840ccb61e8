// SPDX-License-Identifier: Apache-2.0
//
// What NCCL calls when a job shrinks (a process has died, and the others go on), is revoked (all
// requests are given up), or is suspended and resumed.
#include <cstring>
#include <vector>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/levels.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr uint32_t kTimes = 100;
constexpr uint32_t kNewCommunicators = 16;
constexpr size_t kElasticBytes = 300'000;

void run_two_alike(const PeerBody& body) { run_two(PeerMode::kProcesses, body, body); }

// Memory that is given back while a job is suspended, and is at the same addresses afterwards.
class Suspendable {
 public:
  explicit Suspendable(size_t size) : pages_(size, PROT_NONE), size_(size) {}
  void resume() const { map(PROT_READ | PROT_WRITE); }
  void suspend() const { map(PROT_NONE); }
  uint8_t* data() const { return pages_.data(); }
  size_t size() const { return size_; }

 private:
  void map(int protection) const {
    BL_MUST(mmap(data(), size_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
            MAP_FAILED);
  }
  Pages pages_;
  size_t size_;
};

bool holds_pattern(const Suspendable& memory, uint32_t seed) {
  std::vector<uint8_t> wanted(memory.size());
  fill_pattern(wanted.data(), wanted.size(), seed);
  return memcmp(memory.data(), wanted.data(), wanted.size()) == 0;
}

}  // namespace

TEST_CASE("elastic: after a process has died, another closes with open requests and begins anew",
          "[contract][elastic]") {
  if (!kProcessesWork) return;
  const bool has_path = GENERATE(true, false);
  CAPTURE(has_path);
  const std::string port = "h0/" + fabric_facts().devices.front();
  const UndoneFaults undone(port);
  const auto begin_anew = [](uint32_t seed) {
    const Session session;
    must_carry(session.net(), link_to_self(session), seed);
  };
  const auto survivor = [&](Peer& peer) {
    begin_anew(0);  // the devices stay open from now on
    Levels before = levels();
    before.descriptors += kNewCommunicators / 2;  // a leak in each life would be more
    {
      const Session session;
      BothWays pair = connect_both_ways(peer, session);
      Buffer from(session.net(), pair.send, kElasticBytes);
      Buffer into(session.net(), pair.recv, kElasticBytes);
      const Request receive = irecv(session.net(), pair.recv, into.all());
      peer.meet();  // the other process has posted a receive
      const Request send = isend(session.net(), pair.send, from.all());
      if (!has_path) disturb(port, "down");
      peer.kill(1);
      from.drop();
      into.drop();
      pair.send.close();
      pair.recv.close();
    }
    if (!has_path) disturb(port, "up");
    for (uint32_t seed = 1; seed <= kNewCommunicators; ++seed) begin_anew(seed);
    must_return_to(before);
  };
  const auto victim = [](Peer& peer) {
    const Session session;
    BothWays pair = connect_both_ways(peer, session);
    Buffer into(session.net(), pair.recv, kElasticBytes);
    const Request receive = irecv(session.net(), pair.recv, into.all());
    peer.meet();
    peer.receive<bool>(0);  // never comes
  };
  run_two(PeerMode::kProcesses, survivor, victim);
}

// ncclCommRevoke gives up all requests at all ranks; the job then makes a communicator of the same
// processes.
TEST_CASE("elastic: both ends give up open requests while no path works, and connect anew",
          "[contract][elastic]") {
  if (!kProcessesWork) return;
  const std::string port = "h0/" + fabric_facts().devices.front();
  const UndoneFaults undone(port);
  run_two_alike([&](Peer& peer) {
    const Session session;
    BothWays pair = connect_both_ways(peer, session);
    const Levels before = levels();
    Buffer from(session.net(), pair.send, kElasticBytes);
    Buffer into(session.net(), pair.recv, kElasticBytes);
    const Request receive = irecv(session.net(), pair.recv, into.all());
    const Request send = isend(session.net(), pair.send, from.all());
    peer.meet();
    if (peer.rank() == 0) disturb(port, "down");
    peer.meet();
    at_once([&] {
      from.drop();
      into.drop();
      pair.send.close();
      pair.recv.close();
      return true;
    });
    peer.meet();
    if (peer.rank() == 0) disturb(port, "up");
    BothWays anew = connect_both_ways(peer, session);
    Buffer next_from(session.net(), anew.send, kElasticBytes);
    Buffer next_into(session.net(), anew.recv, kElasticBytes);
    next_from.fill(0, kElasticBytes, 7);
    next_into.expect(0, kElasticBytes, 7);
    Request received = irecv(session.net(), anew.recv, next_into.all());
    Request sent = isend(session.net(), anew.send, next_from.all());
    finish_both(received, sent);
    next_into.must_hold();
    next_from.drop();
    next_into.drop();
    must_return_to(before);
    peer.meet();
  });
}

// ncclCommSuspend waits for all ranks, and then memory is given back. The plugin is not told: it
// sees that buffers are deregistered, and are registered again at the same addresses.
TEST_CASE("elastic: a job is suspended and resumed a hundred times", "[contract][elastic]") {
  if (!kProcessesWork) return;
  run_two_alike([](Peer& peer) {
    const Session session;
    const BothWays pair = connect_both_ways(peer, session);
    const Suspendable from(kElasticBytes);
    const Suspendable into(kElasticBytes);
    Levels level{};
    for (uint32_t round = 0; round < kTimes; ++round) {
      from.resume();
      into.resume();
      Mr mr_from(session.net(), pair.send, from.data(), from.size());
      Mr mr_into(session.net(), pair.recv, into.data(), into.size());
      fill_pattern(from.data(), from.size(), round);
      Request receive =
          irecv(session.net(), pair.recv, Part{into.data(), into.size(), 0, mr_into.raw()});
      Request send =
          isend(session.net(), pair.send, Part{from.data(), from.size(), 0, mr_from.raw()});
      finish_both(receive, send);
      BL_MUST(holds_pattern(into, round));
      mr_from.drop();
      mr_into.drop();
      peer.meet();
      from.suspend();
      into.suspend();
      if (round == 0) level = levels();
    }
    must_return_to(level);
  });
}
