// SPDX-License-Identifier: Apache-2.0
//
// One path of a comm: its queue pair, and what belongs to that. Creating and destroying these takes
// milliseconds on real devices, so the control thread does both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "plugin/device/device.h"
#include "plugin/device/loopback.h"
#include "plugin/device/port_report.h"
#include "plugin/device/thread_domain.h"
#include "plugin/verbs/cm_channel.h"
#include "plugin/verbs/handles.h"
#include "plugin/wire/port_types.h"

namespace beeline {

using wire::Notify;

// A queue pair, its completion queue and the objects that exist only with them. They are made
// together and destroyed together: a path that is made anew gets all of them anew, so that no
// completion of an old queue pair can be polled.
struct Queues {
  Queues() = default;
  Queues(Queues&&) = default;
  // A defaulted assignment would destroy the old completion queue before its queue pair.
  Queues& operator=(Queues&& other) noexcept {
    if (this != &other) {
      std::destroy_at(this);
      std::construct_at(this, std::move(other));
    }
    return *this;
  }
  ~Queues() = default;

  // In the order in which they are made: members are destroyed in reverse.
  verbs::Cq cq;
  verbs::Qp qp;
  verbs::CmId cm;                    // none where the plugin itself has moved the queue pair to RTS
  std::optional<Loopback> loopback;  // for flushes: once there is memory that needs them
  std::uint32_t max_inline = 0;      // bytes; granted by the device
};

// One path to one remote port, ready to send, or one that is still missing: it has no queues.
struct PathResources {
  bool is_missing() const noexcept { return !queues.qp; }

  const Device* device = nullptr;
  std::uint8_t rail = 0;       // of this end
  std::uint8_t peer_rail = 0;  // of the other end
  // The comm's control memory, registered with this device. Empty as long as the path has the
  // device that it was made with first: that registration is Connection::memory's. Destroyed after
  // the queues.
  verbs::Mr control;
  std::optional<std::uint32_t> window_key;  // of the peer's window, if it is not that of the
                                            // handshake
  ThreadDomain domain;  // empty: the driver takes locks. Destroyed after the queues in it
  Queues queues;
  Notify notify = Notify::kImmediate;
  OwnAddress own;  // the table entries of this end's port by which it is connected
  std::uint32_t peer_qpn = 0;
  std::string peer_device;       // "mlx5_0:1"
  std::uint32_t speed_mbps = 0;  // of the slower port, as it claims; 0: unknown
};

}  // namespace beeline
