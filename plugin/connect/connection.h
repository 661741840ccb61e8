// SPDX-License-Identifier: Apache-2.0
//
// What the handshake hands to a comm: connected queue pairs, memory for the protocol's own use, and
// the link to the peer. Whoever holds a Connection owns all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/connect/link.h"
#include "plugin/device/device.h"
#include "plugin/memory/control_block.h"
#include "plugin/verbs/cm_channel.h"
#include "plugin/verbs/handles.h"
#include "plugin/wire/limits.h"

namespace beeline {

enum class Role : std::uint8_t { kSend, kReceive };

// How a path announces its last write: what the devices at both ends can do.
enum class Notify : std::uint8_t {
  kImmediate,          // the data carries the immediate
  kNoticeAfterRouted,  // as kImmediate up to the adaptive-routing threshold, a notice above it
  kNotice,             // no immediates (iWARP): a SEND behind the data
};

// One queue pair to one remote port, ready to send.
struct Path {
  const Device* device = nullptr;
  verbs::Cq cq;  // before its QP: members die in reverse order
  verbs::Qp qp;
  verbs::CmId cm;  // none where the ends have moved the queue pair themselves; goes before it
  std::uint32_t max_inline = 0;  // bytes
  Notify notify = Notify::kImmediate;
  std::uint32_t peer_qpn = 0;
  std::string peer_device;
};

// Memory of the peer that this end may write into.
struct PeerWindow {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::array<std::uint32_t, wire::kMaxRails> rkeys{};
};

struct Connection {
  Role role = Role::kSend;
  std::shared_ptr<Link> link;
  ControlBlock memory;      // this end's; its start is the peer's window
  PeerWindow window;        // the peer's credit ring (kReceive); empty for kSend
  std::vector<Path> paths;  // by rail
};

// What one end of a comm needs; the floor above knows how much.
struct EndpointPlan {
  std::size_t memory_bytes = 0;  // of the ControlBlock
  std::size_t window_bytes = 0;  // of it, from its start, open to the peer's writes; may be 0
  std::uint32_t send_depth = 0;  // work requests
  std::uint32_t receive_depth = 0;
  std::uint32_t inline_bytes = 0;  // wanted; what the device grants is Path::max_inline
};

}  // namespace beeline
