// SPDX-License-Identifier: Apache-2.0
//
// Injects one known fault at one known host, and checks that no log line blames another host.
// It needs a fabric of its own, pairs-4.toml.
#include <array>
#include <atomic>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kPairs = 4;  // of pairs-4.toml; each has a fault at the same time
constexpr std::string_view kKill = "kill";

struct FaultKind {
  std::string_view command;  // "#": the number of the host
  std::string_view undo;
};
constexpr std::array kFaultKinds = {
    FaultKind{"down", "reset"},        FaultKind{"gid=3:none", "gid=3:fd00::#"},
    FaultKind{"pkey=0x8001", "reset"}, FaultKind{"loss=100%", "reset"},
    FaultKind{"blackhole", "reset"},   FaultKind{"error=fatal_err@1", "reset"},
    FaultKind{"remove", "return"},     FaultKind{kKill, ""},
};
constexpr size_t kVerdictSize = 100000;

struct Fault {
  FaultKind kind;
  size_t place;  // 0: the sender of its pair, 1: the receiver
};

Fault fault_number(size_t number) {
  return {kFaultKinds[number % kFaultKinds.size()], number / kFaultKinds.size()};
}
constexpr size_t kAllFaults = 2 * kFaultKinds.size();

// Counters in memory that all processes share.
struct Tally {
  std::atomic<size_t> sentences = 0;
  std::atomic<size_t> right = 0;  // accuse the host with the fault
  std::atomic<size_t> wrong = 0;  // accuse another
  std::array<char, 2048> example = {};
};

std::string device_name(size_t host) { return "nic" + std::to_string(host); }

// The numbers of the hosts that a line in the log of `host` blames.
std::set<size_t> accused(const std::string& line, size_t host) {
  std::set<size_t> found;
  constexpr std::string_view kCause = "the cause is at ";
  for (size_t at = line.find(kCause); at != std::string::npos; at = line.find(kCause, at + 1)) {
    const std::string name = line.substr(at, line.find(' ', at + kCause.size()) - at);
    for (size_t other = 0; other < 2 * kPairs; ++other) {
      if (name.find(":" + device_name(other)) != std::string::npos) found.insert(other);
    }
  }
  // In a sentence that the peer has sent, these words refer to the host that logs it.
  for (const char* const words : {"the peer's", "the peer took", "the peer had", "its process"}) {
    if (line.find(words) != std::string::npos) found.insert(host ^ 1);
  }
  for (const char* const words :
       {" our ", "from this host", "of this host went", "of this host reports"}) {
    if (line.find(words) != std::string::npos) found.insert(host);
  }
  return found;
}

void count_lines(Tally& tally, const Fault& fault, size_t host, size_t faulty) {
  for (const std::string& line : find_log_lines(NCCL_LOG_WARN)) {
    // The port event that have_been_down() caused is true, and does not concern the connection.
    if (fault.kind.command == kKill && line.find("of this host reports") != std::string::npos)
      continue;
    const std::set<size_t> hosts = accused(line, host);
    if (line.find(": cannot ") != std::string::npos) ++tally.sentences;
    if (hosts.count(faulty) != 0) ++tally.right;
    if (hosts.size() == hosts.count(faulty) || tally.wrong++ != 0) continue;
    std::snprintf(tally.example.data(), tally.example.size(), "the fault is at h%zu; h%zu: %s",
                  faulty, host, line.c_str());
  }
}

void inject(Peer& peer, const Fault& fault, size_t faulty) {
  if (fault.kind.command == kKill) {
    peer.kill(faulty);
  } else {
    disturb("h" + std::to_string(faulty) + "/" + device_name(faulty),
            std::string(fault.kind.command));
  }
}

void undo(const Fault& fault, size_t faulty) {
  std::string command(fault.kind.undo);
  if (command.empty()) return;
  const size_t number = command.find('#');
  if (number != std::string::npos) command.replace(number, 1, std::to_string(faulty + 1));
  disturb("h" + std::to_string(faulty) + "/" + device_name(faulty), command);
}

// Takes the port of a host without a fault down and up again before the messages, which must not be
// taken for the cause of the later fault. Nothing may be under way meanwhile: the devices give up
// soon.
void have_been_down(Peer& peer, const Fault& fault, size_t faulty) {
  if (fault.kind.command != kKill) return;
  if (peer.rank() != faulty) {
    const std::string port = "h" + std::to_string(peer.rank()) + "/" + device_name(peer.rank());
    disturb(port, "down");
    disturb(port, "up");
  }
  const size_t partner = peer.rank() ^ 1;
  peer.send(partner, true);
  (void)peer.receive<bool>(partner);
}

// Some messages, then the fault, then more until that fails.
void meet_fault(const Sender& end, const Fault& fault, size_t faulty) {
  have_been_down(end.peer, fault, faulty);
  Buffer memory(end, kVerdictSize);
  for (int i = 0; i < 5; ++i) end.send(memory.all()).finish();
  if (faulty != end.peer.rank()) inject(end.peer, fault, faulty);
  BL_MUST(send_until_error(end, memory.all()) != ncclSuccess);
}
void meet_fault(const Receiver& end, const Fault& fault, size_t faulty) {
  have_been_down(end.peer, fault, faulty);
  Buffer memory(end, kVerdictSize);
  for (int i = 0; i < 5; ++i) end.receive(memory.all()).finish();
  if (faulty != end.peer.rank()) inject(end.peer, fault, faulty);
  BL_MUST(receive_until_error(end, memory.all()) != ncclSuccess);
}

void live_through(Peer& peer, const Fault& fault, Tally& tally) {
  const size_t host = peer.rank();
  const size_t partner = host ^ 1;
  const size_t faulty = (host & ~size_t{1}) + fault.place;
  enter_host("h" + std::to_string(host));
  const Session session(Abi::kV12);
  if (host % 2 == 0) {
    auto handle = peer.receive<Handle>(partner);
    meet_fault(Sender{{peer, session, connect(session, 0, handle)}}, fault, faulty);
  } else {
    Handle handle{};
    const Comm listener = listen(session, 0, &handle);
    peer.send(partner, handle);
    meet_fault(Receiver{{peer, session, accept(session, listener)}}, fault, faulty);
  }
  peer.meet();  // the other end may still log something
  count_lines(tally, fault, host, faulty);
}

void run_faults(size_t first, Tally& tally) {
  std::vector<PeerBody> bodies;
  for (size_t host = 0; host < 2 * kPairs; ++host) {
    const Fault fault = fault_number(first + host / 2);
    bodies.push_back([fault, &tally](Peer& peer) { live_through(peer, fault, tally); });
  }
  run_processes(bodies);
  for (size_t pair = 0; pair < kPairs; ++pair) {
    const Fault fault = fault_number(first + pair);
    undo(fault, 2 * pair + fault.place);
  }
}

}  // namespace

TEST_CASE("verdict: no line blames a host that has no fault", "[verdict]") {
  if (!kProcessesWork) return;
  REQUIRE(fabric_facts().devices.front() == device_name(0));  // of pairs-4.toml
  // With these values, the device reports an error within a tenth of a second, or not at all.
  const Variable recovery("BEELINE_RECOVERY", "0");
  const Variable timeout("BEELINE_TIMEOUT", "10");
  const Variable retries("BEELINE_RETRY_CNT", "3");
  const Variable stall("BEELINE_STALL_TIMEOUT", "4s");
  auto& tally = make_shared_object<Tally>();
  for (size_t first = 0; first < kAllFaults; first += kPairs) run_faults(first, tally);
  std::printf("%zu sentences; lines that accuse the host: %zu, another: %zu\n",
              tally.sentences.load(), tally.right.load(), tally.wrong.load());
  INFO(tally.example.data());
  CHECK(tally.wrong == 0);
  CHECK(tally.sentences >= kAllFaults);
}
