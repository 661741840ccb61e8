// SPDX-License-Identifier: Apache-2.0
//
// listen, connect and accept as NCCL wants them: each call starts work or looks at its result, and
// returns at once. The work itself, the control channels to other processes and the watch over them
// run on one control thread, which lives only while there is something to do.
//
// Threads: every function here may be called from any thread at any time, and none puts it to
// sleep. A child of fork() begins anew, whatever its parent was doing.
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

class Listener;  // opaque; owned by the control plane, named by pointer

class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  virtual Result<Listener*> listen(const Device& device, HandleBytes handle,
                                   const CommSettings& settings = {}) = 0;
  // Null: not yet, call again with the same handle memory. After an error the attempt is over.
  virtual Result<std::unique_ptr<Connection>> connect(const Device& device, HandleBytes handle,
                                                      const CommSettings& settings = {}) = 0;
  virtual Result<std::unique_ptr<Connection>> accept(Listener& listener) = 0;
  // Null is allowed. What nobody accepted is given up, and its peers hear of it.
  virtual void close(Listener* listener) noexcept = 0;
  // Has the control thread destroy a comm that was made in Connection::comm.
  virtual void take_back(CommMemory memory) noexcept = 0;
  // What the owner began and never finished or closed: after an abort NCCL forgets it. Its
  // listeners are gone afterwards, and the peers hear of it. Not for kNoOwner, whose connects end
  // when nobody has asked for them for long.
  virtual void reclaim(OwnerId owner) noexcept = 0;
};

// `port_events`, which may be null, gets the events of the ports and devices in use.
// `devices` must outlive the control plane, and the control plane all Connections made by it, or at
// least send_goodbye() on them. Destroying it ends the control thread at once, without goodbyes.
std::unique_ptr<ControlPlane> make_control_plane(ControlOptions options, const DeviceTable& devices,
                                                 PortEvents* port_events = nullptr);

}  // namespace beeline
