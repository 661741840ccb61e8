// SPDX-License-Identifier: Apache-2.0
//
// Control planes on a softnic fabric. Two planes in one process behave like two processes: each has
// an identity, a control thread and channels of its own.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "plugin/connect/control/control_plane.h"
#include "tests/plugin/component/device_rig.h"
#include "tests/support/log_capture.h"
#include "tests/support/peer_group.h"

namespace beeline::test {

// The memory of a handle, which NCCL copies from the listening side to the connecting one.
struct Ticket {
  std::array<std::byte, kHandleBytes> bytes{};

  HandleBytes handle() { return HandleBytes(bytes); }
};

using ConnectionPtr = std::unique_ptr<Connection>;

// Loopback, small queues, and deadlines that a loaded machine can meet.
ControlOptions control_options();

// One process, as far as the others can tell: a control plane.
class Party {
 public:
  explicit Party(const DeviceTable& table, ControlOptions options = control_options(),
                 PortEvents* port_events = nullptr)
      : table_(&table),
        plane_(std::make_unique<ControlPlane>(std::move(options), table, port_events)) {}

  ControlPlane& plane() { return *plane_; }
  void end() { plane_.reset(); }

  Listener* listen(Ticket& ticket, const std::string& device = "softnic0",
                   const CommSettings& settings = {});
  Result<ConnectionPtr> connect(Ticket& ticket, const std::string& device = "softnic1",
                                const CommSettings& settings = {});
  Result<ConnectionPtr> accept(Listener* listener) { return plane_->accept(*listener); }

  // Call until there is a connection. They throw if that fails or takes too long.
  ConnectionPtr wait_connect(Ticket& ticket, const std::string& device = "softnic1");
  ConnectionPtr wait_accept(Listener* listener);
  // Calls until it fails.
  Error wait_connect_error(Ticket& ticket, const std::string& device = "softnic1");

 private:
  const DeviceTable* table_;
  std::unique_ptr<ControlPlane> plane_;
};

// The fixture of most tests: two processes on one host, as far as the planes can tell.
struct TwoPlanes {
  TestFabric fabric;
  std::unique_ptr<DeviceTable> table = scan(fabric);
  LogCapture log;
  Party a{*table};
  Party b{*table};
};

struct CommPair {
  ConnectionPtr sender;
  ConnectionPtr receiver;
};
// Calls connect and accept in turn, as one thread of NCCL does.
CommPair join(Party& listening, Party& connecting);

// Polls the condition, sleeping in between, until it is true. Throws if that takes too long.
template <class Condition>
void wait_for(Condition condition, const char* what) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) throw MustError(std::string("waited too long for ") + what);
    const timespec moment{.tv_sec = 0, .tv_nsec = 200'000};
    nanosleep(&moment, nullptr);
  }
}

// Writes from the receiver into the sender's window, which shows that both queue pairs of the path
// work. `path`: its place in Connection::paths.
void prove_write(Connection& receiver, Connection& sender, std::size_t path = 0);

// softnic's verbs with a count of the existing queue pairs and completion queues. It must outlive
// the device tables that scan() returns.
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

// The threads of this process that have this name.
std::vector<pid_t> thread_ids_named(const std::string& name);
std::size_t threads_named(const std::string& name);
// Established TCP connections of this process, and sockets that listen.
std::size_t tcp_connections();
std::size_t listening_sockets();
// Waits until no control thread is left, and none of its sockets.
void wait_for_quiet();

}  // namespace beeline::test
