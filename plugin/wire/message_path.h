// SPDX-License-Identifier: Apache-2.0
//
// What the ends of a comm tell each other about one path: the connecting side offers all that its
// port has, the accepting side chooses for both and answers with what was chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/wire/handle.h"
#include "plugin/wire/message_bytes.h"
#include "plugin/wire/port_types.h"

namespace beeline::wire {

inline constexpr std::size_t kMaxGids = 256;  // entries of a table that are told
inline constexpr std::size_t kMaxPkeys = 256;
inline constexpr std::size_t kMaxCmAddresses = 8;

// Whether an end lets the kernel's connection manager set up its queue pair.
enum class CmWish : std::uint8_t { kUnable, kAble, kWished };

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

// A port's wishes; -1 is none.
struct Wishes {
  std::int16_t service_level = -1;  // 0 to 15
  std::int16_t traffic_class = -1;  // 0 to 255
  std::int32_t pkey_index = -1;
  std::int32_t gid_index = -1;
  std::uint8_t roce_version = 0;  // 1 or 2; 0: either
  AddressFamily family = AddressFamily::kUnset;
  std::optional<GidRange> gid_range;

  bool operator==(const Wishes&) const = default;
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

// What the connecting side has for the connection manager.
struct CmOffer {
  CmWish wish = CmWish::kUnable;
  std::vector<SocketAddress> addresses = {};  // of its interface, without ports; may be empty

  bool operator==(const CmOffer&) const = default;
};

// Where the accepting side waits for the connection manager's request, and what it must bring.
struct CmDestination {
  SocketAddress address;
  Token cookie{};

  bool operator==(const CmDestination&) const = default;
};

struct PathOffer {
  QpFacts qp;
  LinkLayer link_layer = LinkLayer::kEthernet;
  Transport transport = Transport::kRoce;
  std::uint8_t mtu = 3;  // ibv_mtu: 1 to 5
  std::uint32_t speed_mbps = 0;
  bool immediate = true;
  bool adaptive_routing = false;
  Wishes wishes;
  std::vector<std::uint16_t> pkeys;  // by index
  std::vector<GidEntry> gids;
  CmOffer cm;

  bool operator==(const PathOffer&) const = default;
};

struct PathAnswer {
  QpFacts qp;                  // the accepting side's
  Gid gid{};                   // and its address
  std::uint8_t gid_index = 0;  // the connecting side's, like the next
  std::uint16_t pkey_index = 0;
  std::uint8_t mtu = 3;
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  bool is_global = true;
  std::uint32_t flow_label = 0;  // 20 bits
  Notify notify = Notify::kImmediate;
  std::optional<CmDestination> cm;  // none: the ends move their queue pairs themselves

  bool operator==(const PathAnswer&) const = default;
};

void encode(const PathOffer& offer, Writer& writer);
void encode(const PathAnswer& answer, Writer& writer);
// The reader tells whether it was right.
PathOffer decode_offer(Reader& reader);
PathAnswer decode_answer(Reader& reader);

}  // namespace beeline::wire
