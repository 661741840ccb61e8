// SPDX-License-Identifier: Apache-2.0
//
// The parts of CONNECT, ACCEPT and READY that describe one path. The connecting end offers
// everything that its port has. The accepting end chooses for both and answers with its choice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/wire/handle.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/message_bytes.h"
#include "plugin/wire/port_types.h"

namespace beeline::wire {

inline constexpr std::size_t kMaxGids = 256;  // so many entries of the table are sent
inline constexpr std::size_t kMaxPkeys = 256;
inline constexpr std::size_t kMaxCmAddresses = 8;
inline constexpr std::size_t kMaxWhyBytes = 240;  // of the reason why a path is missing

// Whether the kernel's connection manager can, or must, set up the queue pair of an end.
enum class CmSupport : std::uint8_t { kNone, kPossible, kRequested };

struct GidEntry {
  std::uint16_t index = 0;
  GidType type = GidType::kIb;
  Gid gid{};

  bool operator==(const GidEntry&) const = default;
};

struct GidRange {
  Gid base{};
  std::uint8_t prefix = 0;  // bits, 0 to 128

  bool operator==(const GidRange&) const = default;
};

// What the user has set for the connecting end's queue pairs; -1: not set.
struct PortSettings {
  std::int16_t service_level = -1;  // 0 to 15
  std::int16_t traffic_class = -1;  // 0 to 255
  std::int32_t pkey_index = -1;
  std::int32_t gid_index = -1;
  std::uint8_t roce_version = 0;  // 1 or 2; 0: either
  AddressFamily family = AddressFamily::kUnset;
  std::optional<GidRange> gid_range;

  bool operator==(const PortSettings&) const = default;
};

// Enhanced connection establishment: the three words of ibv_ece.
struct Ece {
  std::uint32_t vendor = 0;
  std::uint32_t options = 0;
  std::uint32_t mask = 0;

  bool operator==(const Ece&) const = default;
};

// One queue pair and the port it is on.
struct QpFacts {
  std::string device;  // "mlx5_0"
  std::uint8_t port = 1;
  std::uint16_t lid = 0;
  std::uint32_t qpn = 0;  // 24 bits
  std::uint32_t psn = 0;  // 24 bits
  std::uint8_t max_rd_atomic = 0;
  std::optional<Ece> ece;

  bool operator==(const QpFacts&) const = default;
};

// The connecting end's facts for the connection manager.
struct CmOffer {
  CmSupport support = CmSupport::kNone;
  std::vector<SocketAddress> addresses = {};  // of its network interface, without ports

  bool operator==(const CmOffer&) const = default;
};

// Where the accepting end listens for the connection manager's request, and the cookie that the
// request must carry.
struct CmDestination {
  SocketAddress address;
  Token cookie{};

  bool operator==(const CmDestination&) const = default;
};

// The paths of a comm have numbers from 0 on, which are the same at both ends.
struct PathOffer {
  std::uint8_t number = 0;
  QpFacts qp;
  LinkLayer link_layer = LinkLayer::kEthernet;
  Transport transport = Transport::kRoce;
  std::uint8_t mtu = 3;          // ibv_mtu: 1 to 5
  std::uint32_t speed_mbps = 0;  // of the port, as it claims; 0: unknown
  bool immediate = true;
  bool adaptive_routing = false;
  PortSettings settings;
  std::vector<std::uint16_t> pkeys;  // by index
  std::vector<GidEntry> gids;
  CmOffer cm;

  bool operator==(const PathOffer&) const = default;
};

struct PathAnswer {
  std::uint8_t number = 0;
  QpFacts qp;                    // of the accepting end
  std::uint32_t speed_mbps = 0;  // likewise, as PathOffer::speed_mbps
  Gid gid{};                     // of the accepting end
  std::uint8_t gid_index = 0;    // in the connecting end's table, as the next
  std::uint16_t pkey_index = 0;
  std::uint8_t mtu = 3;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  bool is_global = true;
  std::uint32_t flow_label = 0;  // 20 bits
  Notify notify = Notify::kImmediate;
  std::optional<CmDestination> cm;  // none: each end moves its queue pair itself

  bool operator==(const PathAnswer&) const = default;
};

// A path that the sender of the message could not make. The other end drops it as well.
struct MissingPath {
  std::uint8_t number = 0;
  std::string why;  // names the host and the port

  bool operator==(const MissingPath&) const = default;
};

void encode(const PathOffer& offer, Writer& writer);
void encode(const PathAnswer& answer, Writer& writer);
void encode(const MissingPath& path, Writer& writer);
// The caller asks the reader whether all fields were valid.
PathOffer decode_offer(Reader& reader);
PathAnswer decode_answer(Reader& reader);
MissingPath decode_missing(Reader& reader);
std::uint8_t decode_path_number(Reader& reader);

// An address without its port.
void encode_host(const SocketAddress& address, Writer& writer);
SocketAddress decode_host(Reader& reader);

}  // namespace beeline::wire
