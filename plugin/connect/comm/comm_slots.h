// SPDX-License-Identifier: Apache-2.0
//
// The slots of the statistics page that the control thread needs: for connections that are being
// made, and for listeners where accept() waits. The runtime owns the page and gives them.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/base/clock.h"
#include "plugin/connect/comm/link.h"
#include "plugin/device/rail_devices.h"
#include "plugin/stats/slot.h"
#include "plugin/wire/handle.h"

namespace beeline {

// Threads: any.
class CommSlots {
 public:
  // For a comm, or a listener, of these devices. Empty if there is none left.
  virtual StatsSlot acquire(SlotRole role, RailDevices devices) noexcept = 0;
  // Shows by which number the peers know this process: see identity_of().
  virtual void set_identity(std::uint64_t identity) noexcept = 0;
  // Shows that the control thread ran at this moment.
  virtual void set_alive(std::int64_t now_ns) noexcept = 0;

 protected:
  ~CommSlots() = default;
};

// A connect() or accept() that was not called for so long is not called any more. NCCL repeats them
// all the time.
inline constexpr std::int64_t kNotCalledNs = 3 * kNsPerSec;

// How the pages name a process: the first bytes of its random id.
inline std::uint64_t identity_of(const wire::ProcessId& process) noexcept {
  std::uint64_t identity = 0;
  static_assert(sizeof identity <= sizeof process);
  std::memcpy(&identity, process.data(), sizeof identity);
  return identity;
}

// Names the other end of a connection that is made.
inline void name_peer(StatsSlot& slot, const Link& link) noexcept {
  slot.set_peer(link.peer().host, link.peer().device,
                {.pid = link.peer().pid, .ours = link.number(), .theirs = link.peer_number()},
                link.peer().clock);
}

}  // namespace beeline
