// SPDX-License-Identifier: Apache-2.0
//
// listen, connect and accept. As NCCL requires, each call starts work or looks at
// its result, and returns at once. One control thread does the work, and runs the control channels
// to other processes. It exists only while there is something to do.
//
// Threads: any thread may call any function at any time, and no call sleeps. A child of fork()
// starts with a control plane of its own, whatever its parent was doing.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "common/base/result.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/comm/control_mailbox.h"
#include "plugin/connect/handshake/control_options.h"
#include "plugin/connect/path/port_watch.h"
#include "plugin/device/device_table.h"

namespace beeline {

inline constexpr std::size_t kHandleBytes = 128;  // NCCL_NET_HANDLE_MAXSIZE
using HandleBytes = std::span<std::byte, kHandleBytes>;

struct ProcessState;

class ControlPlane {
 public:
  // `port_events`, which may be null, receives the events of the devices in use. `devices` must
  // outlive the control plane, and the control plane must outlive its Connections, or at least
  // their send_goodbye().
  ControlPlane(ControlOptions options, const DeviceTable& devices,
               PortEvents* port_events = nullptr)
      : options_(std::move(options)), port_events_(port_events), devices_(&devices) {}
  // Ends the control thread at once, without goodbyes.
  ~ControlPlane();

  Result<Listener*> listen(RailDevices devices, HandleBytes handle,
                           const CommSettings& settings = {});
  // Null if the connection is not ready: the caller calls again with the same handle memory. An
  // error ends the attempt.
  Result<std::unique_ptr<Connection>> connect(RailDevices devices, HandleBytes handle,
                                              const CommSettings& settings = {});
  Result<std::unique_ptr<Connection>> accept(Listener& listener);
  // The listener may be null. Connections that nobody has accepted are given up, and their peers
  // are told.
  void close(Listener* listener) noexcept;
  // Has the control thread destroy a closed comm that was made in the memory of Connection::comm.
  void take_back(CommMemory memory) noexcept;
  // Ends all that the owner has begun and neither finished nor closed, which NCCL forgets after an
  // abort. Its listeners are invalid afterwards, and the peers are told. Does nothing for kNoOwner,
  // whose connects end when NCCL has not called for a long time.
  void reclaim(OwnerId owner) noexcept;

 private:
  // Null if there is none yet, or it is the parent's.
  ProcessState* own_process() const noexcept;
  Result<ProcessState*> get_process();
  Status begin(ProcessState& process, AttemptOrder order, HandleBytes handle);
  // The caller of these has locked the process state's mutex.
  Status serve_locked(ProcessState& process);
  Status start_thread_locked(ProcessState& process);
  // Logs the cause of a failure.
  Result<wire::SocketAddress> listen_locked(ProcessState& process);

  const ControlOptions options_;
  PortEvents* const port_events_;
  const DeviceTable* const devices_;
  std::atomic<ProcessState*> process_{nullptr};
};

}  // namespace beeline
