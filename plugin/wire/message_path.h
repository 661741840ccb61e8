// SPDX-License-Identifier: Apache-2.0
//
// The parts of CONNECT, ACCEPT and READY that describe one path. The connecting end offers
// everything that its port has. The accepting end chooses for both and answers with its choice.
//
// message_bytes.h explains fields().
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/wire/handle.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/port_types.h"

namespace beeline::wire {

inline constexpr std::size_t kMaxGids = 256;  // so many entries of the table are sent
inline constexpr std::size_t kMaxPkeys = 256;
inline constexpr std::size_t kMaxCmAddresses = 8;
inline constexpr std::size_t kMaxWhyBytes = 240;   // of the reason why a path is missing
inline constexpr std::size_t kMaxDeviceName = 64;  // IBV_SYSFS_NAME_MAX

// Whether the kernel's connection manager can, or must, set up the queue pair of an end.
enum class CmSupport : std::uint8_t { kNone, kPossible, kRequested };

// What the user has set for the connecting end's queue pairs; -1: not set.
struct PortSettings {
  std::int16_t service_level = -1;  // 0 to 15
  std::int16_t traffic_class = -1;  // 0 to 255
  std::int32_t pkey_index = -1;
  std::int32_t gid_index = -1;
  std::uint8_t roce_version = 0;  // 1 or 2; 0: either
  AddressFamily family = AddressFamily::kUnset;
  std::optional<GidRange> gid_range;

  static void fields(auto& io, auto& settings) {
    io.within(settings.service_level, -1, 15);
    io.within(settings.traffic_class, -1, 255);
    io.within(settings.pkey_index, -1, UINT16_MAX);
    io.within(settings.gid_index, -1, UINT16_MAX);
    io.within(settings.roce_version, 0, 2);
    io.choice(settings.family, AddressFamily::kIpv6);
    io(settings.gid_range);
  }
  bool operator==(const PortSettings&) const = default;
};

// Enhanced connection establishment: the three words of ibv_ece.
struct Ece {
  std::uint32_t vendor = 0;
  std::uint32_t options = 0;
  std::uint32_t mask = 0;

  static void fields(auto& io, auto& ece) { io(ece.vendor, ece.options, ece.mask); }
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

  static void fields(auto& io, auto& qp) {
    io.text(qp.device, kMaxDeviceName);
    io.within(qp.port, 1, UINT8_MAX);
    io(qp.lid);
    io.within(qp.qpn, 0, 0xff'ffff);
    io.within(qp.psn, 0, 0xff'ffff);
    io(qp.max_rd_atomic, qp.ece);
  }
  bool operator==(const QpFacts&) const = default;
};

// The connecting end's facts for the connection manager.
struct CmOffer {
  CmSupport support = CmSupport::kNone;
  std::vector<SocketAddress> addresses = {};  // of its network interface, without ports

  static void fields(auto& io, auto& cm) {
    io.choice(cm.support, CmSupport::kRequested);
    io.list(cm.addresses, kMaxCmAddresses);
  }
  bool operator==(const CmOffer&) const = default;
};

// Where the accepting end listens for the connection manager's request, and the cookie that the
// request must carry.
struct CmDestination {
  SocketAddress address;
  Token cookie{};

  static void fields(auto& io, auto& cm) {
    io(cm.address);
    io.within(cm.address.port, 1, UINT16_MAX);
    io(cm.cookie);
  }
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

  static void fields(auto& io, auto& offer) {
    io.within(offer.number, 0, kMaxPaths - 1);
    io(offer.qp);
    io.choice(offer.link_layer, LinkLayer::kEthernet);
    io.choice(offer.transport, Transport::kIwarp);
    io.within(offer.mtu, 1, 5);
    io(offer.speed_mbps, offer.immediate, offer.adaptive_routing, offer.settings);
    io.list(offer.pkeys, kMaxPkeys);
    io.list(offer.gids, kMaxGids);
    io(offer.cm);
  }
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

  static void fields(auto& io, auto& answer) {
    io.within(answer.number, 0, kMaxPaths - 1);
    io(answer.qp, answer.speed_mbps, answer.gid, answer.gid_index, answer.pkey_index);
    io.within(answer.mtu, 1, 5);
    io.within(answer.service_level, 0, 15);
    io(answer.traffic_class, answer.is_global);
    io.within(answer.flow_label, 0, 0xf'ffff);
    io.choice(answer.notify, Notify::kNotice);
    io(answer.cm);
  }
  bool operator==(const PathAnswer&) const = default;
};

// A path that the sender of the message could not make. The other end drops it as well.
struct MissingPath {
  std::uint8_t number = 0;
  std::string why;  // names the host and the port

  static void fields(auto& io, auto& path) {
    io.within(path.number, 0, kMaxPaths - 1);
    io.text(path.why, kMaxWhyBytes);
  }
  bool operator==(const MissingPath&) const = default;
};

inline std::uint8_t path_number(std::uint8_t path) noexcept { return path; }
std::uint8_t path_number(const auto& path) noexcept { return path.number; }

// Adds them to the set `seen`. False if one is there already, or is not a number of a path.
bool add_numbers(const auto& paths, std::bitset<kMaxPaths>& seen) noexcept {
  return std::ranges::all_of(paths, [&seen](const auto& path) {
    const std::uint8_t number = path_number(path);
    if (number >= kMaxPaths || seen[number]) return false;
    seen.set(number);
    return true;
  });
}

// The two lists of CONNECT, ACCEPT and READY: no number twice, and at least one path. A CONNECT
// that only lists what is missing says that its sender can make no path.
void path_lists(auto& io, auto& message, bool may_lack_all = false) {
  io.list(message.paths, kMaxPaths);
  io.list(message.missing, kMaxPaths);
  std::bitset<kMaxPaths> seen;
  const bool has_enough = !message.paths.empty() || (may_lack_all && !message.missing.empty());
  io.require(has_enough && add_numbers(message.paths, seen) && add_numbers(message.missing, seen));
}

}  // namespace beeline::wire
