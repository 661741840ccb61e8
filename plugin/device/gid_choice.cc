// SPDX-License-Identifier: Apache-2.0
//
// Compares all pairs of entries. A table has a few dozen entries at most.
#include "plugin/device/gid_choice.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace beeline {
namespace {

AddressFamily family_of(const Gid& gid) noexcept {
  return is_ipv4_mapped(gid) ? AddressFamily::kIpv4 : AddressFamily::kIpv6;
}

bool is_asked_version(GidType type, int version) noexcept {
  if (version == 1) return type == GidType::kRoceV1;
  return version != 2 || type == GidType::kRoceV2;
}

// Whether the settings of this side allow this entry.
bool is_candidate(const GidSide& side, const GidEntry& entry) noexcept {
  const GidPolicy& policy = side.policy;
  if (policy.fixed_index >= 0) return entry.index == policy.fixed_index;
  if (is_zero(entry.gid) || !is_asked_version(entry.type, policy.roce_version)) return false;
  return !policy.range || is_in(*policy.range, entry.gid);
}

bool is_preferred_family(const GidSide& side, const Gid& gid) noexcept {
  const AddressFamily preferred = side.policy.family;
  return family_of(gid) == (preferred == AddressFamily::kUnset ? AddressFamily::kIpv4 : preferred);
}

// Whether packets can be sent between the two. The RoCE versions have different wire formats, and
// the header of a RoCE v2 packet is either IPv4 or IPv6.
bool can_reach(const GidEntry& a, const GidEntry& b) noexcept {
  if (a.type != b.type) return false;
  return a.type != GidType::kRoceV2 || family_of(a.gid) == family_of(b.gid);
}

// A better pair compares greater. The order does not depend on which side is which.
using Merit = std::tuple<bool, int, int, int, int>;

Merit merit_of(const GidSide& local, const GidEntry& ours, const GidSide& remote,
               const GidEntry& theirs, bool same_port) {
  const int global = (is_link_local(ours.gid) ? 0 : 1) + (is_link_local(theirs.gid) ? 0 : 1);
  const int preferred = (is_preferred_family(local, ours.gid) ? 1 : 0) +
                        (is_preferred_family(remote, theirs.gid) ? 1 : 0);
  int common = common_prefix(ours.gid, theirs.gid);
  // If two hosts have the same address, it is of a bridge or of a private link on each of them, and
  // does not reach the peer.
  if (common == 128 && !same_port) common = 0;
  return {ours.type == GidType::kRoceV2, global == 2 ? 1 : -(global & 1), preferred, common,
          -(ours.index + theirs.index)};
}

std::string candidates_text(const GidSide& side) {
  std::string text;
  for (const GidEntry& entry : side.table) {
    if (!text.empty()) text += ", ";
    text += std::string(to_string(entry.type)) + " " + to_string(entry.gid) + " at index " +
            std::to_string(entry.index);
  }
  return text.empty() ? "no GID at all" : text;
}

std::string settings_text(const GidSide& side) {
  const GidPolicy& policy = side.policy;
  if (policy.fixed_index >= 0) return "GID index " + std::to_string(policy.fixed_index);
  std::string text = "GID";
  if (policy.roce_version != 0) text = "RoCE v" + std::to_string(policy.roce_version) + " GID";
  if (policy.range) {
    text += " in " + to_string(policy.range->base) + "/" +
            std::to_string(policy.range->prefix - (is_ipv4_mapped(policy.range->base) ? 96 : 0));
  }
  return text;
}

bool has_candidate(const GidSide& side) {
  return std::any_of(side.table.begin(), side.table.end(),
                     [&](const GidEntry& entry) { return is_candidate(side, entry); });
}

std::string refusal(const GidSide& local, const GidSide& remote) {
  for (const GidSide* side : {&local, &remote}) {
    if (has_candidate(*side)) continue;
    return "no " + settings_text(*side) + " on " + std::string(side->who) + ": found only " +
           candidates_text(*side);
  }
  return "no pair of GIDs of one RoCE version and address family: " + settings_text(local) +
         " on " + std::string(local.who) + " (" + candidates_text(local) + "), " +
         settings_text(remote) + " on " + std::string(remote.who) + " (" + candidates_text(remote) +
         ")";
}

const GidEntry* find_entry(const GidSide& side, int index) {
  const auto found = std::ranges::find(side.table, index, &GidEntry::index);
  return found == side.table.end() ? nullptr : &*found;
}

const GidEntry* find_ib_entry(const GidSide& side, int flid_index) {
  if (side.policy.fixed_index >= 0) return find_entry(side, side.policy.fixed_index);
  const GidEntry* const routed = find_entry(side, flid_index);
  return routed != nullptr && flid_of(routed->gid) != 0 ? routed : find_entry(side, 0);
}

// In a GID with a FLID, the number of the subnet follows the FLID.
bool are_of_one_subnet(const Gid& a, const Gid& b) noexcept {
  if (flid_of(a) == 0 && flid_of(b) == 0) return subnet_prefix(a) == subnet_prefix(b);
  return a[6] == b[6] && a[7] == b[7];
}

constexpr int kMappedBits = 96;  // of an IPv4 address within a GID

bool parse_ipv6(const std::string& text, Gid& gid) noexcept {
  return ::inet_pton(AF_INET6, text.c_str(), gid.data()) == 1;
}

bool parse_ipv4(const std::string& text, Gid& gid) noexcept {
  gid = {};
  gid[10] = gid[11] = 0xff;
  return ::inet_pton(AF_INET, text.c_str(), gid.data() + 12) == 1;
}

}  // namespace

Outcome<GidPair> choose_gids(const GidSide& local, const GidSide& remote) {
  const bool same_port = std::ranges::equal(local.table, remote.table);
  const GidEntry* best_ours = nullptr;
  const GidEntry* best_theirs = nullptr;
  Merit best;
  for (const GidEntry& ours : local.table) {
    if (!is_candidate(local, ours)) continue;
    for (const GidEntry& theirs : remote.table) {
      if (!is_candidate(remote, theirs) || !can_reach(ours, theirs)) continue;
      const Merit merit = merit_of(local, ours, remote, theirs, same_port);
      if (best_ours != nullptr && merit <= best) continue;
      best = merit;
      best_ours = &ours;
      best_theirs = &theirs;
    }
  }
  if (best_ours == nullptr) return fail(refusal(local, remote));
  return GidPair{.local_index = best_ours->index, .remote_index = best_theirs->index, .grh = true};
}

Outcome<GidPair> choose_ib_gids(const GidSide& local, const GidSide& remote) {
  const int flid_index = local.policy.flid_index;
  const GidEntry* const ours = find_ib_entry(local, flid_index);
  const GidEntry* const theirs = find_ib_entry(remote, flid_index);
  for (const GidSide* side : {&local, &remote}) {
    if (find_ib_entry(*side, flid_index) != nullptr) continue;
    return fail("no GID at index " + std::to_string(std::max(side->policy.fixed_index, 0)) +
                " on " + std::string(side->who) + ": found only " + candidates_text(*side));
  }
  return GidPair{.local_index = ours->index,
                 .remote_index = theirs->index,
                 .grh = !are_of_one_subnet(ours->gid, theirs->gid)};
}

Outcome<std::optional<GidRange>> parse_gid_range(std::string_view text) {
  if (text.empty()) return std::optional<GidRange>();
  const auto slash = text.find('/');
  GidRange range{.base = {}, .prefix = 128};
  const std::string address(text.substr(0, slash));
  const bool is_ipv6 = parse_ipv6(address, range.base);
  if (!is_ipv6 && !parse_ipv4(address, range.base)) {
    return fail("\"" + std::string(text) + "\" is not an address range like 10.0.0.0/8");
  }
  if (slash == std::string_view::npos) return std::optional(range);

  const std::string_view length = text.substr(slash + 1);
  const int skipped = is_ipv6 ? 0 : kMappedBits;
  int bits = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bits);
  if (error != std::errc() || end != length.data() + length.size() || bits < 0 ||
      bits > 128 - skipped) {
    return fail("\"" + std::string(text) + "\": the prefix length must be 0 to " +
                std::to_string(128 - skipped));
  }
  range.prefix = static_cast<std::uint8_t>(skipped + bits);
  return std::optional(range);
}

}  // namespace beeline
