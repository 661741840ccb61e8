// SPDX-License-Identifier: Apache-2.0
//
// The IP addresses of an RDMA device's network interface, by which the connection manager finds the
// device.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "plugin/wire/handle.h"

namespace beeline {

struct NetdevAddress {
  wire::SocketAddress address;  // without a port
  int prefix = 0;               // bits of it that name the subnet
};

Result<std::vector<NetdevAddress>> addresses_of(const std::string& netdev);

bool is_in_subnet(const NetdevAddress& ours, const wire::SocketAddress& other) noexcept;

// The one to meet a peer with that has `theirs`, of which nothing may be known: then any. In one
// subnet with the peer before others, IPv4 before IPv6, link-local last. Null: none of a family
// that the peer has.
const NetdevAddress* choose_address(std::span<const NetdevAddress> ours,
                                    std::span<const wire::SocketAddress> theirs) noexcept;

}  // namespace beeline
