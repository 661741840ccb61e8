// SPDX-License-Identifier: Apache-2.0
//
// The interface for listen, connect and accept. As NCCL requires, each call starts work or looks at
// its result, and returns at once. One control thread does the work, and runs the control channels
// to other processes. It exists only while there is something to do.
//
// Threads: any thread may call any function at any time, and no call sleeps. A child of fork()
// starts
//   with a control plane of its own, whatever its parent was doing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/base/result.h"
#include "plugin/connect/comm/connection.h"
#include "plugin/connect/handshake/control_options.h"
#include "plugin/connect/path/port_watch.h"
#include "plugin/device/device_table.h"

namespace beeline {

inline constexpr std::size_t kHandleBytes = 128;  // NCCL_NET_HANDLE_MAXSIZE
using HandleBytes = std::span<std::byte, kHandleBytes>;

class Listener;  // owned by the control plane

class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  virtual Result<Listener*> listen(RailDevices devices, HandleBytes handle,
                                   const CommSettings& settings = {}) = 0;
  // Null if the connection is not ready: the caller calls again with the same handle memory. An
  // error ends the attempt.
  virtual Result<std::unique_ptr<Connection>> connect(RailDevices devices, HandleBytes handle,
                                                      const CommSettings& settings = {}) = 0;
  virtual Result<std::unique_ptr<Connection>> accept(Listener& listener) = 0;
  // The listener may be null. Connections that nobody has accepted are given up, and their peers
  // are told.
  virtual void close(Listener* listener) noexcept = 0;
  // Has the control thread destroy a closed comm that was made in the memory of Connection::comm.
  virtual void take_back(CommMemory memory) noexcept = 0;
  // Ends all that the owner has begun and neither finished nor closed, which NCCL forgets after an
  // abort. Its listeners are invalid afterwards, and the peers are told. Does nothing for kNoOwner,
  // whose connects end when NCCL has not called for a long time.
  virtual void reclaim(OwnerId owner) noexcept = 0;
};

// `port_events`, which may be null, receives the events of the devices in use. `devices` must
// outlive the control plane, and the control plane must outlive its Connections, or at least their
// send_goodbye(). Its destructor ends the control thread at once, without goodbyes.
std::unique_ptr<ControlPlane> make_control_plane(ControlOptions options, const DeviceTable& devices,
                                                 PortEvents* port_events = nullptr);

}  // namespace beeline
