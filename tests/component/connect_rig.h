// SPDX-License-Identifier: Apache-2.0
//
// Control planes on a softnic fabric. TwoPlanes planes of one process are planes processes to each
// other: each has a process id, a control thread and channels of its own.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "plugin/connect/control/control_plane.h"
#include "tests/component/device_rig.h"
#include "tests/support/log_capture.h"
#include "tests/support/peer_group.h"

namespace beeline::test {

// What NCCL carries from the listening side to the connecting one.
struct Ticket {
  std::array<std::byte, kHandleBytes> bytes{};

  HandleBytes handle() { return HandleBytes(bytes); }
};

using ConnectionPtr = std::unique_ptr<Connection>;

// Loopback, small queues, deadlines that a loaded machine can keep.
ControlOptions control_options();

// One process, or what stands for one.
class Party {
 public:
  explicit Party(const DeviceTable& table, ControlOptions options = control_options(),
                 PortEvents* port_events = nullptr)
      : table_(&table), plane_(make_control_plane(std::move(options), table, port_events)) {}

  ControlPlane& plane() { return *plane_; }
  void end() { plane_.reset(); }

  Listener* listen(Ticket& ticket, const std::string& device = "softnic0",
                   const CommSettings& settings = {});
  Result<ConnectionPtr> connect(Ticket& ticket, const std::string& device = "softnic1",
                                const CommSettings& settings = {});
  Result<ConnectionPtr> accept(Listener* listener) { return plane_->accept(*listener); }

  // Until it is there. Throw when it fails, or takes too long.
  ConnectionPtr wait_connect(Ticket& ticket, const std::string& device = "softnic1");
  ConnectionPtr wait_accept(Listener* listener);
  // Until it fails.
  Error wait_connect_error(Ticket& ticket, const std::string& device = "softnic1");

 private:
  const DeviceTable* table_;
  std::unique_ptr<ControlPlane> plane_;
};

struct CommPair {
  ConnectionPtr sender;
  ConnectionPtr receiver;
};
// Polls both sides in turn, as one thread of NCCL's does.
CommPair join(Party& listening, Party& connecting);

// Polls now and then until it holds; throws when it does not. Leaves the CPU to others.
template <class Condition>
void wait_for(Condition condition, const char* what) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) throw MustError(std::string("waited in vain for ") + what);
    const timespec moment{.tv_sec = 0, .tv_nsec = 200'000};
    nanosleep(&moment, nullptr);
  }
}

// A message of the receiver lands in the sender's window: both queue pairs work.
void prove_write(Connection& receiver, Connection& sender);

// softnic's verbs, counting the queue pairs and completion queues that there are. Tables made over
// it come and go within its life.
class CountedVerbs {
 public:
  CountedVerbs();
  CountedVerbs(const CountedVerbs&) = delete;
  CountedVerbs& operator=(const CountedVerbs&) = delete;

  std::unique_ptr<DeviceTable> scan(const TestFabric& fabric) const;
  static int objects();

 private:
  verbs::Api api_;
};

// Threads of this process with this name.
std::vector<pid_t> thread_ids_named(const std::string& name);
std::size_t threads_named(const std::string& name);
// Established TCP connections of this process, and sockets that listen.
std::size_t tcp_connections();
std::size_t listening_sockets();
// Until no control thread is left, and nothing that one has had open.
void wait_for_quiet();

}  // namespace beeline::test
