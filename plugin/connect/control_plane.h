// SPDX-License-Identifier: Apache-2.0
//
// listen, connect and accept as NCCL wants them: each call starts work or looks at its result, and
// returns at once. The work itself, the control channels to other processes and the watch over them
// run on one control thread, which lives only while there is something to do.
//
// Threads: every function here may be called from any thread at any time, and none puts it to
// sleep. A child of fork() begins anew, whatever its parent was doing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "plugin/base/result.h"
#include "plugin/connect/comm_settings.h"
#include "plugin/connect/connection.h"
#include "plugin/connect/peer_limits.h"
#include "plugin/connect/qp_options.h"
#include "plugin/device/device_table.h"
#include "plugin/verbs/async_event.h"
#include "plugin/verbs/cm_api.h"

namespace beeline {

inline constexpr std::size_t kHandleBytes = 128;  // NCCL_NET_HANDLE_MAXSIZE
using HandleBytes = std::span<std::byte, kHandleBytes>;

class Listener;  // opaque; owned by the control plane, named by pointer

struct ControlOptions {
  std::string interface;       // NCCL_SOCKET_IFNAME's grammar; empty: choose
  std::string family;          // AF_INET, AF_INET6 or empty
  std::string near_cpus = {};  // processors for the control thread, "0-31,64-95"; empty: any
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds half_open_timeout{};
  std::chrono::milliseconds peer_timeout{};  // TCP_USER_TIMEOUT
  // After which a connect of kNobody that nobody asks for is given up. 0: twice connect_timeout, a
  // minute at least.
  std::chrono::milliseconds forgotten_timeout{};
  EndpointPlan sender;
  EndpointPlan receiver;
  QpOptions qp;
  PeerLimits limits = {};
  verbs::CmLibrary* cm_library = nullptr;  // outlives the control plane; null: none
};

// Called on the control thread, which waits for them: they must be quick.
struct ControlHooks {
  // Of the ports and devices that have been listened on or connected from.
  std::function<void(const DeviceContext&, const verbs::AsyncEvent&)> on_device_event;
};

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
  // What Connection::comm was.
  virtual void take_back(CommMemory memory) noexcept = 0;
  // What the owner began and never finished or closed: after an abort NCCL forgets it. Its
  // listeners are gone afterwards, and the peers hear of it. Not for kNobody, whose connects end
  // when nobody has asked for them for long.
  virtual void reclaim(OwnerId owner) noexcept = 0;
};

// `devices` must outlive the control plane, and the control plane all Connections made by it, or at
// least say_goodbye() on them. Destroying it ends the control thread at once, without goodbyes.
std::unique_ptr<ControlPlane> make_control_plane(ControlOptions options, const DeviceTable& devices,
                                                 ControlHooks hooks = {});

}  // namespace beeline
