// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/socket/netdev_address.h"

#include <ifaddrs.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "plugin/connect/socket/address.h"

namespace beeline {
namespace {

std::size_t address_bytes(wire::AddressKind kind) noexcept {
  return kind == wire::AddressKind::kIpv4 ? 4 : 16;
}

int prefix_of(const sockaddr* mask) noexcept {
  const auto bits = mask == nullptr ? std::nullopt : from_kernel(mask);
  int prefix = 0;
  if (bits) {
    for (const std::uint8_t byte : bits->bytes) prefix += std::popcount(byte);
  }
  return prefix;
}

// Larger is better. Negative if the two addresses cannot be used together.
int rank_of(const NetdevAddress& ours, const wire::SocketAddress* theirs) noexcept {
  int rank = 0;
  if (theirs != nullptr) {
    if (ours.address.kind != theirs->kind) return -1;
    if (is_in_subnet(ours, *theirs)) rank += 8;
  }
  if (!is_link_local(ours.address)) rank += 4;
  if (ours.address.kind == wire::AddressKind::kIpv4) rank += 2;
  return rank;
}

}  // namespace

Result<std::vector<NetdevAddress>> addresses_of(const std::string& netdev) {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return fail_errno("list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, &freeifaddrs);
  std::vector<NetdevAddress> found;
  for (const ifaddrs* one = raw; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || netdev != one->ifa_name) continue;
    const auto address = from_kernel(one->ifa_addr);
    if (address) found.push_back({.address = *address, .prefix = prefix_of(one->ifa_netmask)});
  }
  return found;
}

bool is_in_subnet(const NetdevAddress& ours, const wire::SocketAddress& other) noexcept {
  if (ours.address.kind != other.kind) return false;
  int left = ours.prefix;
  for (std::size_t i = 0; i < address_bytes(other.kind) && left > 0; ++i, left -= 8) {
    const int differs = ours.address.bytes[i] ^ other.bytes[i];
    if (differs >> std::max(8 - left, 0) != 0) return false;
  }
  return true;
}

const NetdevAddress* choose_address(std::span<const NetdevAddress> ours,
                                    std::span<const wire::SocketAddress> theirs) noexcept {
  const NetdevAddress* best = nullptr;
  int best_rank = -1;
  for (const NetdevAddress& own : ours) {
    int rank = theirs.empty() ? rank_of(own, nullptr) : -1;
    for (const wire::SocketAddress& other : theirs) rank = std::max(rank, rank_of(own, &other));
    if (rank <= best_rank) continue;
    best = &own;
    best_rank = rank;
  }
  return best;
}

}  // namespace beeline
