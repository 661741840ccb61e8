// SPDX-License-Identifier: Apache-2.0
//
// Chooses the network interface of the control channels by NCCL_SOCKET_IFNAME:
//   [^][=]name,name,...
// ^ excludes the named interfaces. = compares whole names; otherwise a name matches all interfaces
// that begin with it. Without a filter, loopback and docker interfaces are used only if there is no
// other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/problem.h"
#include "plugin/wire/handle.h"

namespace beeline {

struct Interface {
  std::string name;
  wire::SocketAddress address;  // without a port
};

// One entry for each address of the interfaces that are up.
Result<std::vector<Interface>> list_interfaces();

// `family` is NCCL_SOCKET_FAMILY: AF_INET, AF_INET6 or empty. Among equal candidates, link-local
// addresses go last, IPv4 goes before IPv6, and then the system's order decides. The error lists
// the interfaces of this host.
Outcome<Interface> choose_interface(std::span<const Interface> interfaces, std::string_view filter,
                                    std::string_view family);

// True for link-local IPv6 addresses. One from another host does not say which local interface
// leads there.
bool needs_scope(const wire::SocketAddress& address) noexcept;
// The index of the interface that the control channels use.
Outcome<std::uint32_t> local_scope(std::string_view filter);

}  // namespace beeline
