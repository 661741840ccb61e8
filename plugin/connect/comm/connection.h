// SPDX-License-Identifier: Apache-2.0
//
// The result of a handshake, on which a comm is built: connected queue pairs, memory for the
// protocol's own use, and the link to the peer. A Connection owns all of it. Destroying one takes
// milliseconds on real devices, so the control thread does that, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/connect/comm/link.h"
#include "plugin/device/device.h"
#include "plugin/device/loopback.h"
#include "plugin/device/port_report.h"
#include "plugin/device/rail_devices.h"
#include "plugin/device/thread_domain.h"
#include "plugin/memory/control_block.h"
#include "plugin/verbs/cm_channel.h"
#include "plugin/verbs/handles.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/port_types.h"

namespace beeline {

enum class Role : std::uint8_t { kSend, kReceive };

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

// One path to one remote port, ready to send.
struct PathResources {
  const Device* device = nullptr;
  std::uint8_t rail = 0;       // of this end
  std::uint8_t peer_rail = 0;  // of the other end
  ThreadDomain domain;         // empty: the driver takes locks. Destroyed after the queues in it
  Queues queues;
  Notify notify = Notify::kImmediate;
  OwnAddress own;  // the table entries of this end's port by which it is connected
  std::uint32_t peer_qpn = 0;
  std::string peer_device;       // "mlx5_0:1"
  std::uint32_t speed_mbps = 0;  // of the slower port, as it claims; 0: unknown
};

// Memory of the peer that this end may write into.
struct PeerWindow {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::array<std::uint32_t, wire::kMaxRails> rkeys{};
};

// Memory for the object that the transfer layer makes of a connection. The control thread allocates
// it, and after the close destroys the object and frees the memory. NCCL's threads do neither: they
// would sleep in malloc or free now and then, as tests/scale shows.
inline constexpr std::size_t kCommAlignment = 64;
struct DestroyComm {
  void (*destroy)(std::byte*) noexcept = nullptr;  // null while no object is in the memory

  void operator()(std::byte* memory) const noexcept {
    if (destroy != nullptr) destroy(memory);
    ::operator delete (memory, std::align_val_t{kCommAlignment});
  }
};
using CommMemory = std::unique_ptr<std::byte, DestroyComm>;

struct Connection {
  Role role = Role::kSend;
  std::shared_ptr<Link> link;
  ControlBlock memory;               // this end's; its start is the peer's window
  PeerWindow window;                 // the peer's credit ring (kReceive); empty for kSend
  RailDevices devices;               // of this end
  std::size_t receiver_rails = 1;    // of the receiving end, and so the keys in a credit line
  std::vector<PathResources> paths;  // those that are connected, at least one
  std::size_t planned_paths = 1;     // with those that are missing: CommPlans::of() got this
  CommMemory comm;                   // CommPlan::comm_bytes
  CommMemory extra;                  // CommPlan::extra_bytes; only objects without a destructor
};

// The sizes of what one end of a comm needs. The transfer floor knows them.
struct CommPlan {
  std::size_t memory_bytes = 0;  // of the ControlBlock
  std::size_t window_bytes = 0;  // of it, from its start, open to the peer's writes; may be 0
  std::uint32_t send_depth = 0;  // work requests
  std::uint32_t receive_depth = 0;
  std::uint32_t flush_depth = 0;   // places in the completion queue for flushes
  std::uint32_t inline_bytes = 0;  // wanted; what the device grants is Queues::max_inline
  std::size_t comm_bytes = 0;      // of Connection::comm; 0: none
  std::size_t extra_bytes = 0;     // of Connection::extra; 0: none
};

// The plans of an end with one path, with two, and so on.
struct CommPlans {
  std::array<CommPlan, wire::kMaxRails> by_paths;

  const CommPlan& of(std::size_t paths) const noexcept { return by_paths[paths - 1]; }
};

}  // namespace beeline
