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
#include <vector>

#include "common/check/assert.h"
#include "plugin/connect/comm/link.h"
#include "plugin/connect/comm/path_resources.h"
#include "plugin/device/rail_devices.h"
#include "plugin/memory/control_block.h"
#include "plugin/stats/slot.h"
#include "plugin/wire/limits.h"

namespace beeline {

enum class Role : std::uint8_t { kSend, kReceive };

// Memory of the peer that this end may write into: a sender's credit ring, and behind it, or at a
// receiver alone, a cell for messages (plugin/wire/in_band.h) if the comm has several paths.
struct PeerWindow {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::array<std::uint32_t, wire::kMaxRails> rkeys{};
};

// Memory for the object that the transfer layer makes of a connection. The control thread allocates
// it, and after the close destroys the object and frees the memory. NCCL's threads do neither: they
// would sleep in malloc or free now and then, as tests/plugin/scale shows.
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
  ControlBlock memory;             // this end's; the peer writes to a part of it
  PeerWindow window;               // empty: the peer has none
  RailDevices devices;             // of this end, as NCCL has chosen them
  std::size_t receiver_rails = 1;  // of the receiving end, and so the keys in a credit line
  // At least one is connected. Those that are missing are here, too, if they can be made later:
  // then the index of a path is its number.
  std::vector<PathResources> paths;
  std::size_t planned_paths = 1;  // with those that are missing: CommPlans::of() got this
  StatsSlot slot;                 // of the connecting end, since connect() began
  // The paths and tables of a comm with several paths, which its destructor destroys, so that this
  // memory comes first: CommPlan::extra_bytes.
  CommMemory extra;
  CommMemory comm;  // CommPlan::comm_bytes
};

// The sizes of what one end of a comm needs. The transfer floor knows them.
struct CommPlan {
  std::size_t memory_bytes = 0;  // of the ControlBlock
  std::size_t window_at = 0;     // the part of it into which the peer writes
  std::size_t window_bytes = 0;  // may be 0
  std::uint32_t send_depth = 0;  // work requests
  std::uint32_t receive_depth = 0;
  std::uint32_t flush_depth = 0;   // places in the completion queue for flushes
  std::uint32_t inline_bytes = 0;  // wanted; what the device grants is Queues::max_inline
  std::size_t comm_bytes = 0;      // of Connection::comm; 0: none
  std::size_t extra_bytes = 0;     // of Connection::extra; 0: none
};

// By which the control memory is registered.
inline unsigned control_access(const CommPlan& plan) noexcept {
  constexpr unsigned kLocal = IBV_ACCESS_LOCAL_WRITE;
  return plan.window_bytes == 0 ? kLocal : kLocal | IBV_ACCESS_REMOTE_WRITE;
}

// The plans of an end with one path, with two, and so on.
struct CommPlans {
  std::array<CommPlan, wire::kMaxRails> by_paths;

  const CommPlan& of(std::size_t paths) const noexcept {
    BL_ASSERT(paths - 1 < by_paths.size(), "a comm has one path at least, and has its plan");
    return by_paths[paths - 1];
  }
};

}  // namespace beeline
