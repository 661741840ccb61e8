// SPDX-License-Identifier: Apache-2.0
//
// Which of this host's addresses the control channels use: NCCL_SOCKET_IFNAME's grammar,
//   [^][=]name,name,...
// ^ means all but these, = means the whole name (else a name's beginning is enough). Without it:
// any interface but loopback and docker's, and those only when there is nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "plugin/wire/handle.h"

namespace beeline {

struct Interface {
  std::string name;
  wire::SocketAddress address;  // without a port
};

// Of those that are up.
Result<std::vector<Interface>> list_interfaces();

// `family` is NCCL_SOCKET_FAMILY: AF_INET, AF_INET6 or empty. Of equal candidates IPv4 goes before
// IPv6, an address that is not link-local before one that is, then the system's order decides. The
// error is a text for people, and lists what there is.
Result<Interface, std::string> choose_interface(std::span<const Interface> interfaces,
                                                std::string_view filter, std::string_view family);

// A link-local IPv6 address of another host says nothing about the interface here that leads there.
bool needs_scope(const wire::SocketAddress& address) noexcept;
// The number of the interface that control channels use.
Result<std::uint32_t, std::string> local_scope(std::string_view filter);

}  // namespace beeline
