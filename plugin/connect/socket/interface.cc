// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/socket/interface.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <memory>

#include "plugin/connect/socket/address.h"

namespace beeline {
namespace {

struct Filter {
  bool exclude = false;
  bool exact = false;
  std::vector<std::string_view> names;
};

Filter parse(std::string_view text) {
  Filter filter;
  if (text.starts_with('^')) {
    filter.exclude = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    filter.exact = true;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    if (!name.empty()) filter.names.push_back(name);
    text.remove_prefix(std::min(text.size(), name.size() + 1));
  }
  return filter;
}

bool is_admitted(const Filter& filter, const Interface& interface) {
  const bool named =
      std::any_of(filter.names.begin(), filter.names.end(), [&](std::string_view name) {
        return filter.exact ? interface.name == name : interface.name.starts_with(name);
      });
  return named != filter.exclude;
}

bool is_of_family(const Interface& interface, std::string_view family) {
  if (family == "AF_INET") return interface.address.kind == wire::AddressKind::kIpv4;
  if (family == "AF_INET6") return interface.address.kind == wire::AddressKind::kIpv6;
  return true;
}

// Smaller is better. If a filter names the interfaces, loopback is as good as any other.
int rank(const Interface& interface, bool filtered) {
  int rank = 0;
  if (!filtered && is_loopback(interface.address)) rank += 8;
  if (!filtered && interface.name.starts_with("docker")) rank += 4;
  if (is_link_local(interface.address)) rank += 2;
  if (interface.address.kind == wire::AddressKind::kIpv6) rank += 1;
  return rank;
}

std::string no_interface_text(std::span<const Interface> interfaces, std::string_view filter,
                              std::string_view family) {
  std::string text = "no network interface for the control channel";
  if (!filter.empty()) text.append(" matches NCCL_SOCKET_IFNAME=").append(filter);
  if (!family.empty()) text.append(", NCCL_SOCKET_FAMILY=").append(family);
  text += "; this host has ";
  if (interfaces.empty()) return text + "none that is up";
  for (const Interface& interface : interfaces) {
    text += interface.name + " (" + ip_text(interface.address) + "), ";
  }
  text.resize(text.size() - 2);
  return text;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return fail_errno("list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, &freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* one = raw; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const auto address = from_kernel(one->ifa_addr);
    if (address) interfaces.push_back({.name = one->ifa_name, .address = *address});
  }
  return interfaces;
}

Outcome<Interface> choose_interface(std::span<const Interface> interfaces, std::string_view filter,
                                    std::string_view family) {
  const Filter parsed = parse(filter);
  const bool filtered = !parsed.names.empty();
  const Interface* best = nullptr;
  for (const Interface& interface : interfaces) {
    if (filtered && !is_admitted(parsed, interface)) continue;
    if (!is_of_family(interface, family)) continue;
    // A filter that excludes names says nothing about the order of the others.
    const bool by_name = filtered && !parsed.exclude;
    if (best == nullptr || rank(interface, by_name) < rank(*best, by_name)) best = &interface;
  }
  if (best == nullptr)
    return fail(Problem(Errc::kNotFound, no_interface_text(interfaces, filter, family)));
  return *best;
}

bool needs_scope(const wire::SocketAddress& address) noexcept {
  return address.kind == wire::AddressKind::kIpv6 && is_link_local(address);
}

Outcome<std::uint32_t> local_scope(std::string_view filter) {
  const Result<std::vector<Interface>> interfaces = list_interfaces();
  if (!interfaces) return fail(Problem(interfaces.error()));
  const Interface chosen = BL_TRY(choose_interface(*interfaces, filter, "AF_INET6"));
  return if_nametoindex(chosen.name.c_str());
}

}  // namespace beeline
