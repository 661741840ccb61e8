// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/agreement.h"

#include <algorithm>
#include <cstring>

#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/path/wire_conversion.h"
#include "plugin/device/agree.h"
#include "plugin/device/gid_choice.h"

namespace beeline {
namespace {

constexpr int kMaxReads = 16;

std::string port_name(const std::string& host, const std::string& device, int port) {
  return host + " " + device + " port " + std::to_string(port);
}
std::string port_name(const PortSide& ours) {
  return port_name(host_name(), ours.device.ibdev, ours.device.port);
}

const char* kind_of_port(Transport transport) {
  switch (transport) {
    case Transport::kInfiniBand: return "an InfiniBand port";
    case Transport::kRoce: return "a RoCE port";
    case Transport::kIwarp: return "an iWARP port";
  }
  return "a port";
}

std::uint8_t reads_of(const Device& device) {
  return static_cast<std::uint8_t>(std::clamp(device.caps.max_rd_atomic, 0, kMaxReads));
}

Outcome<void> check_transports(const PortSide& ours, const wire::PathOffer& offer,
                               const std::string& peer) {
  const Transport theirs = offer.transport;
  const std::string both = " (" + peer + ", " + port_name(ours) + ")";
  if (theirs != ours.device.transport) {
    return fail(std::string(kind_of_port(theirs)) + " cannot talk to " +
                kind_of_port(ours.device.transport) + both);
  }
  return {};
}

GidPolicy gid_policy_of(const PortSide& ours) {
  const bool is_ib = ours.device.transport == Transport::kInfiniBand;
  return is_ib ? ours.options.ib_gid : ours.options.gid;
}

Outcome<GidPair> agree_gids(const PortSide& ours, const wire::PathOffer& offer,
                            const std::string& peer) {
  const std::string name = port_name(ours);
  const GidSide local{.table = ours.facts.gids, .policy = gid_policy_of(ours), .who = name};
  const GidSide remote{.table = offer.gids, .policy = gid_policy(offer.settings), .who = peer};
  if (ours.device.transport == Transport::kInfiniBand) return BL_TRY(choose_ib_gids(local, remote));
  return BL_TRY(choose_gids(local, remote));
}

const Gid* find_gid(const std::vector<GidEntry>& table, std::uint16_t index) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const GidEntry& entry) { return entry.index == index; });
  return found == table.end() ? nullptr : &found->gid;
}

std::string no_gid_text(const std::string& port, std::uint16_t index) {
  return port + " has no GID at index " + std::to_string(index);
}

int agreed(int theirs, int ours, const char* what, const std::string& peer) {
  const AgreedValue agreed = agree_value(theirs, ours);
  if (agreed.acceptor_overruled) {
    BL_INFO(kLogNet, "%s %d is set on this host and %d on %s, which sends: %d is used", what, ours,
            theirs, peer.c_str(), agreed.value);
  }
  return agreed.value;
}

// The entries of the port's tables that a route uses.
OwnAddress own_address(const PortFacts& facts, const Route& route) {
  OwnAddress own;
  own.lid = facts.lid;
  if (route.pkey_index < facts.pkeys.size()) {
    own.pkey = {.index = route.pkey_index, .pkey = facts.pkeys[route.pkey_index]};
  }
  const Gid* const gid = find_gid(facts.gids, route.path.sgid_index);
  if (route.path.is_global && gid != nullptr)
    own.gid = {.index = route.path.sgid_index, .gid = *gid};
  return own;
}

// A packet for another InfiniBand subnet goes to a router. If the peer's GID contains an FLID, that
// is the LID to send it to.
std::uint16_t dlid_of(const PortSide& ours, std::uint16_t lid, const Gid& gid,
                      bool is_global) noexcept {
  const bool is_routed = is_global && ours.device.transport == Transport::kInfiniBand;
  return is_routed && flid_of(gid) != 0 ? flid_of(gid) : lid;
}

// Linux combines the upper 6 bits of a flow label with the lower 14 to a UDP port. So labels with
// the same upper bits and different lower ones have different ports. A label of 0 would let the
// driver choose, so the upper bits are never 0.
constexpr std::uint32_t kLabelLowBits = 0x3fff;
constexpr std::uint32_t kLabelHighBits = 0xf'c000;

std::uint32_t random_flow_label() {
  return (verbs::random_psn() & (kLabelHighBits | kLabelLowBits)) | (kLabelLowBits + 1);
}

std::uint32_t flow_label_of(std::uint32_t first, std::uint8_t path) noexcept {
  return (first & kLabelHighBits) | ((first + path) & kLabelLowBits);
}

Notify choose_notify(const PortSide& ours, const wire::PathOffer& offer) {
  if (!offer.immediate || !ours.device.caps.immediate) return Notify::kNotice;
  // With adaptive routing at the sender its packets may overtake each other.
  return offer.adaptive_routing ? Notify::kNoticeAfterRouted : Notify::kImmediate;
}

// The part of a route that does not depend on who sets up the queue pair.
Route peer_route(const PortSide& ours, const wire::QpFacts& peer, std::uint32_t peer_speed_mbps,
                 Notify notify) {
  Route route;
  route.peer_qpn = peer.qpn;
  route.peer_psn = peer.psn;
  route.peer_device = peer.device + ":" + std::to_string(peer.port);
  route.reads = std::min(reads_of(ours.device), peer.max_rd_atomic);
  route.notify = notify;
  const std::uint32_t speed = ours.facts.speed_mbps;
  const bool is_one_unknown = speed == 0 || peer_speed_mbps == 0;
  route.speed_mbps =
      is_one_unknown ? std::max(speed, peer_speed_mbps) : std::min(speed, peer_speed_mbps);
  return route;
}

// iWARP has no partitions.
Outcome<int> pkey_index_of(const PortSide& ours) {
  if (ours.device.transport == Transport::kIwarp) return -1;
  const std::string own = port_name(ours);
  return fixed_pkey_index({ours.facts.pkeys, ours.options.pkey, own});
}

wire::CmSupport cm_support_of(const PortSide& ours) {
  if (ours.device.netdev.empty()) return wire::CmSupport::kNone;
  return is_cm_required(ours) ? wire::CmSupport::kRequested : wire::CmSupport::kPossible;
}

}  // namespace

FlowLabels random_flow_labels() {
  return {.ours = random_flow_label(), .theirs = random_flow_label()};
}

FlowLabels flow_labels_of(const FlowLabels& first, std::uint8_t path) noexcept {
  return {.ours = flow_label_of(first.ours, path), .theirs = flow_label_of(first.theirs, path)};
}

bool is_cm_required(const PortSide& ours) noexcept {
  return ours.device.transport == Transport::kIwarp || ours.options.cm_requested;
}

Outcome<wire::PathOffer> make_offer(const PortSide& ours) {
  wire::PathOffer offer;
  offer.link_layer = ours.device.link_layer;
  offer.transport = ours.device.transport;
  offer.mtu = static_cast<std::uint8_t>(ours.facts.active_mtu);
  offer.speed_mbps = ours.facts.speed_mbps;
  offer.immediate = ours.device.caps.immediate;
  offer.adaptive_routing = ours.device.caps.adaptive_routing;
  offer.settings = settings_of(ours.options, gid_policy_of(ours));
  offer.settings.pkey_index = BL_TRY(pkey_index_of(ours));
  offer.pkeys = ours.facts.pkeys;
  if (offer.pkeys.size() > wire::kMaxPkeys) offer.pkeys.resize(wire::kMaxPkeys);
  offer.gids = ours.facts.gids;
  if (offer.gids.size() > wire::kMaxGids) offer.gids.resize(wire::kMaxGids);
  offer.cm.support = cm_support_of(ours);
  return offer;
}

wire::QpFacts qp_facts(const PortSide& ours, const PathSetup& path) {
  wire::QpFacts qp;
  qp.device = ours.device.ibdev;
  qp.port = ours.device.port;
  qp.lid = ours.facts.lid;
  qp.qpn = path.qpn();
  qp.psn = path.psn();
  qp.max_rd_atomic = reads_of(ours.device);
  if (const auto ece = path.ece()) qp.ece = to_wire(*ece);
  return qp;
}

bool is_cm_used(const PortSide& ours, const wire::PathOffer& offer, const std::string& peer_host) {
  if (ours.device.transport == Transport::kIwarp) return true;
  const bool is_requested =
      ours.options.cm_requested || offer.cm.support == wire::CmSupport::kRequested;
  if (!is_requested || offer.cm.support != wire::CmSupport::kNone) return is_requested;
  BL_INFO(kLogNet, "librdmacm is set for %s but not used: %s has no network interface for it",
          port_name(ours).c_str(), port_name(peer_host, offer.qp.device, offer.qp.port).c_str());
  return false;
}

Outcome<Agreement> agree_with_cm(const PortSide& ours, const wire::PathOffer& offer,
                                 const std::string& peer_host) {
  const std::string peer = port_name(peer_host, offer.qp.device, offer.qp.port);
  BL_TRY(check_transports(ours, offer, peer));
  Agreement agreement;
  agreement.answer.mtu = offer.mtu;
  agreement.answer.traffic_class = static_cast<std::uint8_t>(
      agreed(offer.settings.traffic_class, ours.options.traffic_class, "traffic class", peer));
  agreement.answer.notify = choose_notify(ours, offer);
  agreement.answer.speed_mbps = ours.facts.speed_mbps;
  agreement.route = peer_route(ours, offer.qp, offer.speed_mbps, agreement.answer.notify);
  return agreement;
}

Outcome<Agreement> agree(const PortSide& ours, const wire::PathOffer& offer,
                         const std::string& peer_host, const FlowLabels& labels) {
  const std::string peer = port_name(peer_host, offer.qp.device, offer.qp.port);
  BL_TRY(check_transports(ours, offer, peer));
  const GidPair gids = BL_TRY(agree_gids(ours, offer, peer));
  const std::string own = port_name(ours);
  const PkeyPair pkeys = BL_TRY(agree_pkey(
      {.table = ours.facts.pkeys, .choice = ours.options.pkey, .who = own},
      {.table = offer.pkeys, .choice = {.index = offer.settings.pkey_index}, .who = peer}));
  const Result<ibv_mtu> mtu = agree_mtu(ours.facts.active_mtu, offer.mtu);
  if (!mtu) {
    return fail("the MTU of " + own + " or " + peer + " is none that verbs know: codes " +
                std::to_string(ours.facts.active_mtu) + " and " + std::to_string(offer.mtu));
  }
  const auto sl = static_cast<std::uint8_t>(
      agreed(offer.settings.service_level, ours.options.service_level, "service level", peer));
  const auto tc = static_cast<std::uint8_t>(
      agreed(offer.settings.traffic_class, ours.options.traffic_class, "traffic class", peer));

  const Gid* const own_gid = find_gid(ours.facts.gids, gids.local_index);
  const Gid* const peer_gid = find_gid(offer.gids, gids.remote_index);
  if (own_gid == nullptr) return fail(no_gid_text(own, gids.local_index));
  if (peer_gid == nullptr) return fail(no_gid_text(peer, gids.remote_index));

  const bool is_roce = ours.device.transport == Transport::kRoce;
  Agreement agreement;
  wire::PathAnswer& answer = agreement.answer;
  answer.gid = *own_gid;
  answer.gid_index = static_cast<std::uint8_t>(gids.remote_index);
  answer.pkey_index = pkeys.remote_index;
  answer.mtu = static_cast<std::uint8_t>(*mtu);
  answer.service_level = sl;
  answer.traffic_class = tc;
  answer.is_global = gids.grh;
  answer.flow_label = is_roce ? labels.theirs : 0;
  answer.speed_mbps = ours.facts.speed_mbps;
  answer.notify = choose_notify(ours, offer);

  Route& route = agreement.route;
  route = peer_route(ours, offer.qp, offer.speed_mbps, answer.notify);
  route.pkey_index = pkeys.local_index;
  route.path = {.port = ours.device.port,
                .dlid = dlid_of(ours, offer.qp.lid, *peer_gid, gids.grh),
                .sl = sl,
                .is_global = gids.grh,
                .dgid = to_ibv(*peer_gid),
                .sgid_index = static_cast<std::uint8_t>(gids.local_index),
                .traffic_class = tc,
                .flow_label = is_roce ? labels.ours : 0};
  route.own = own_address(ours.facts, route);
  route.mtu = *mtu;
  if (offer.qp.ece) route.ece = to_ibv(*offer.qp.ece);
  return agreement;
}

Outcome<Route> route_of(const PortSide& ours, const wire::PathAnswer& answer) {
  if (answer.cm) {
    if (ours.device.netdev.empty()) return fail("it asks for librdmacm, which was not offered");
    return peer_route(ours, answer.qp, answer.speed_mbps, answer.notify);
  }
  if (ours.device.transport == Transport::kIwarp) {
    return fail("it is without librdmacm, and an iWARP port cannot be connected otherwise");
  }
  if (answer.is_global && find_gid(ours.facts.gids, answer.gid_index) == nullptr) {
    return fail("it chooses a GID, but " + no_gid_text(port_name(ours), answer.gid_index));
  }
  if (answer.pkey_index >= ours.facts.pkeys.size()) {
    return fail("it chooses a partition key, but " + port_name(ours) + " has none at index " +
                std::to_string(answer.pkey_index));
  }
  if (answer.mtu > ours.facts.active_mtu) return fail("its MTU is larger than what was offered");
  Route route = peer_route(ours, answer.qp, answer.speed_mbps, answer.notify);
  route.pkey_index = answer.pkey_index;
  route.path = {.port = ours.device.port,
                .dlid = dlid_of(ours, answer.qp.lid, answer.gid, answer.is_global),
                .sl = answer.service_level,
                .is_global = answer.is_global,
                .dgid = to_ibv(answer.gid),
                .sgid_index = answer.gid_index,
                .traffic_class = answer.traffic_class,
                .flow_label = answer.flow_label};
  route.own = own_address(ours.facts, route);
  route.mtu = static_cast<ibv_mtu>(answer.mtu);
  if (answer.qp.ece) route.ece = to_ibv(*answer.qp.ece);
  return route;
}

}  // namespace beeline
